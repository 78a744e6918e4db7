"""Process groups: their names, members and sequence counters.

A collective is known by its group's name and its number in the group, so both must be the
same on every rank: names are torch's own, numbers count what Python sees issued. Messages
between two ranks are no matter of the group: each direction counts for itself.
"""
from . import guest
from .guest import probe

_handles = {}  # group name -> (handle, members as told)
_pairs = {}  # name of a direction -> handle
_gloo = set()  # handles of groups whose work has plain futures
_of = {}  # process group -> handle, for the default group also None
_c10d = None


def watch(c10d):
    global _c10d
    _c10d = c10d


def forget():
    """Groups were made or destroyed: names may belong to other objects now."""
    _of.clear()


def handle_of(group):
    """-1 for a group that this rank is no member of."""
    try:
        return _of[group]
    except (KeyError, TypeError):
        return _learn(group)


def _learn(group):
    try:
        c10d = _c10d
        pg = c10d._get_default_group() if group is None else group
        if pg is c10d.GroupMember.NON_GROUP_MEMBER:
            return -1
        name = name_of(pg)
        handle = _handle_named(name, ranks_of(pg))
        _of[group] = handle
        if backend_of(pg, "cpu") == "gloo":
            _gloo.add(handle)
        return handle
    except Exception:
        return -1  # not initialised, or no group at all: torch will say so itself


def has_futures(handle):
    return handle in _gloo


def rank_in_job(group, index):
    """The job's rank of a group's index; None stays None."""
    if index is None:
        return None
    pg = _c10d._get_default_group() if group is None else group
    return _c10d.get_global_rank(pg, index)


def name_of(pg):
    c10d = _c10d
    world = getattr(c10d, "_world", None)
    names = world.pg_names if world is not None else c10d._pg_names
    return str(names[pg])


def ranks_of(pg):
    return [int(r) for r in _c10d.get_process_group_ranks(pg)]


def _handle_named(name, ranks):
    """A name that returns after the group was destroyed goes on counting."""
    handle, told = _handles.get(name, (None, None))
    if handle is None:
        handle = probe.group(name)
    if told != ranks:
        _handles[name] = handle, ranks
        guest.record("meta.group", {"name": name, "ranks": ranks})
    return handle


def pair(group, src, dst):
    """The handle for messages src -> dst (ranks of the job; None = from anyone)."""
    try:
        key = (group, src, dst)
        handle = _of.get(key)
        if handle is None:
            pg = _c10d._get_default_group() if group is None else group
            name = "%s p2p %s>%s" % (name_of(pg), "?" if src is None else src, dst)
            handle = _pairs.get(name)
            if handle is None:
                handle = _pairs[name] = probe.group(name)
            _of[key] = handle
        return handle
    except Exception:
        return -1


def backend_of(pg, device_type):
    """The backend that serves this kind of device: "gloo", "nccl", …"""
    name = str(_c10d.get_backend(pg)).lower()
    if ":" in name:  # "cpu:gloo,cuda:nccl"
        return dict(part.split(":", 1) for part in name.split(",")).get(device_type, "")
    return name
