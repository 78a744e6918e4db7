"""DistributedDataParallel: its buckets, and when each is ready, sent and reduced.

A DDP has one place for a hook on its communication. On gloo, and only while nobody else
wants it, ours goes there at the first forward: it does what DDP does without a hook, in the
same arithmetic, and tells. A user's hook that comes later is called in its place from then
on, with the same outcome as if the place had been free. Where the place is not ours (NCCL,
join(), a built-in hook on a GPU), a hook on each bucket's last parameter tells readiness.
"""
import functools
import sys
import threading
import weakref

from . import collectives, groups, guest
from .guest import probe

F_ALL_REDUCE = collectives.ALL_REDUCE << 8
inside = collectives.inside

_slots = {}  # id of a Reducer -> Slot; the DDP that owns the reducer takes it away
_n_ddp = 0
_layout = threading.local()  # .buckets = the last assignment that DDP asked for
_plain = {}  # the functions of torch.distributed that are wrapped here


class Slot:
    """One DDP's place for a communication hook."""

    def __init__(self):
        self.ddp = lambda: None
        self.index = 0
        self.group = -1  # handle
        self.pg = None
        self.holder = ""  # "" free, "ours", "user", "builtin", "declined"
        self.user = None  # (state, hook) that ours calls
        self.join_work = None  # counts the ranks that have not joined, in this iteration
        self.told_rebuilt = False
        self.layout = None  # (buckets of parameter numbers, bytes) as first built
        self.marks = []  # handles of parameter hooks
        self.n_looks = 0


def _slot_of_reducer(reducer):
    slot = _slots.get(id(reducer))
    if slot is None:
        slot = _slots[id(reducer)] = Slot()
    return slot


def _slot_of(ddp):
    """The DDP's slot; made here for one that was built, copied or unpickled."""
    global _n_ddp
    slot = _slot_of_reducer(ddp.reducer)
    if slot.ddp() is not ddp:
        if slot.ddp() is not None or slot.index:  # a dead reducer's address
            slot = _slots[id(ddp.reducer)] = Slot()
        slot.ddp = weakref.ref(ddp, _forgetter(id(ddp.reducer), slot))
        slot.index = _n_ddp
        slot.pg = ddp.process_group
        slot.group = groups.handle_of(slot.pg)
        _n_ddp += 1
        guest.install("ddp.layout", _tell_built, ddp, slot)
    return slot


def _forgetter(key, slot):
    def forget(_):
        if _slots.get(key) is slot:
            del _slots[key]

    return forget


# records ------------------------------------------------------------------------------


def _parameters(ddp):
    """Names of the parameters in DDP's order, and the parameters."""
    ignored = set(getattr(ddp, "parameters_to_ignore", ()))
    return [(n, p) for n, p in ddp.module.named_parameters()
            if p.requires_grad and n not in ignored]


def _tell_built(ddp, slot):
    data = ddp._get_ddp_logging_data()
    pg = ddp.process_group
    parameters = _parameters(ddp)
    guest.record("meta.ddp", {
        "ddp": slot.index, "group": groups.name_of(pg),
        "backend": groups.backend_of(pg, str(getattr(ddp, "device_type", "cpu"))),
        "module": data.get("module_name") or type(ddp.module).__name__,
        "params": len(parameters), "bucket_cap_bytes": data.get("bucket_cap_bytes"),
        "find_unused_parameters": bool(getattr(ddp, "find_unused_parameters", False)),
        "static_graph": bool(getattr(ddp, "static_graph", False)),
        "gradient_as_bucket_view": bool(getattr(ddp, "gradient_as_bucket_view", False)),
        "broadcast_buffers": bool(getattr(ddp, "broadcast_buffers", False)),
    })
    buckets, _layout.buckets = getattr(_layout, "buckets", None), None
    sizes = _integers(data.get("bucket_sizes", ""))
    if buckets is not None and len(buckets) == len(sizes):
        slot.layout = buckets, sizes
        _tell_buckets(slot, parameters, buckets, sizes, False)


def _integers(text):
    return [int(x) for x in str(text).replace(",", " ").split()]


def _tell_buckets(slot, parameters, buckets, sizes, rebuilt):
    """DDP numbers its buckets in the order in which it sends them."""
    names = [n for n, _ in parameters]
    for i, (indices, n_bytes) in enumerate(zip(buckets, sizes)):
        listed, room = [], 3000
        for k in indices:
            name = names[k] if 0 <= k < len(names) else str(k)
            room -= len(name) + 4
            if room < 0:
                break
            listed.append(name)
        guest.record("bucket.add", {"ddp": slot.index, "id": i, "bytes": n_bytes,
                                    "params": len(indices), "param": listed,
                                    "rebuilt": rebuilt})


def _look_for_rebuilt(ddp, slot):
    """DDP orders its buckets anew after the first iteration; its log knows some forwards later."""
    if slot.told_rebuilt or slot.n_looks > 32:
        return
    slot.n_looks += 1
    if not getattr(ddp, "_has_rebuilt_buckets", True):
        return
    data = ddp._get_ddp_logging_data()
    text = data.get("rebuilt_per_bucket_param_indices", "")
    if not text:
        return
    slot.told_rebuilt = True
    buckets = [_integers(part) for part in str(text).split(",") if part.strip()]
    parameters = _parameters(ddp)
    sizes = _integers(data.get("rebuilt_bucket_sizes", ""))
    guest.record("bucket.rebuilt", {"ddp": slot.index, "count": len(buckets)})
    _tell_buckets(slot, parameters, buckets, sizes, True)
    if slot.holder in ("declined", "builtin"):
        _mark_parameters(ddp, slot, parameters, [b[-1] for b in buckets], sizes)


# readiness where the place is not ours ------------------------------------------------


def _unmark(slot):
    for handle in slot.marks:
        handle.remove()
    slot.marks = []


def _mark_parameters(ddp, slot, parameters, last, sizes):
    """One hook a bucket, on the parameter whose gradient came last when DDP looked."""
    _unmark(slot)
    own = weakref.ref(ddp)

    def mark(bucket, n_bytes):
        def ready(grad):
            try:
                ddp = own()
                if ddp is not None and ddp.require_backward_grad_sync:
                    probe.bucket_ready(slot.index, slot.group, bucket, n_bytes)
            except Exception:
                guest.failed("ddp.ready")

        return sys.modules["torch"].utils.hooks.unserializable_hook(ready)

    for i, (k, n_bytes) in enumerate(zip(last, sizes)):
        if 0 <= k < len(parameters):
            slot.marks.append(parameters[k][1].register_hook(mark(i, n_bytes)))


# our hook -----------------------------------------------------------------------------


def _divisor(slot, pg):
    """What DDP divides by: under join() with a shrinking world, the ranks still in it."""
    ddp = slot.ddp()
    if (slot.join_work is not None and ddp is not None
            and not getattr(ddp, "_divide_by_initial_world_size", True)):
        return int(slot.join_work.get_future().wait()[0].item())
    return pg.size()


def _hook(slot, bucket):
    if slot.user is not None:
        state, hook = slot.user
        return _traced(slot, hook, state, bucket)
    pg = slot.pg
    tensor = bucket.buffer()
    index, handle = bucket.index(), slot.group
    dtype, n_bytes = collectives.measure(tensor)
    flags = probe.bucket_ready(slot.index, handle, index, n_bytes)
    # DDP without a hook multiplies by the reciprocal; dividing would round otherwise.
    tensor.mul_(1.0 / _divisor(slot, pg))
    kind = F_ALL_REDUCE | dtype
    token = probe.coll_begin(handle, kind, n_bytes, False)
    probe.bucket_submit(flags, handle, index, token)
    future = pg.allreduce([tensor]).get_future()

    def reduced(future):
        value = future.value()[0]
        probe.bucket_reduced(flags, handle, index, token)
        probe.coll_end(handle, kind, token, n_bytes)
        return value

    return future.then(collectives.handed_over(reduced))


def _traced(slot, hook, state, bucket):
    """A user's hook: what it sends is seen as it sends it, the first counts as the bucket's."""
    index, handle = bucket.index(), slot.group
    flags = n_bytes = None
    try:
        n_bytes = collectives.measure(bucket.buffer())[1]
        flags = probe.bucket_ready(slot.index, handle, index, n_bytes)
    except Exception:
        guest.failed("ddp.hook")
    inside.first = None
    try:
        future = hook(state, bucket)
    finally:
        token, inside.first = inside.first, 1
    try:
        if token is not None and flags is not None:
            probe.bucket_submit(flags, handle, index, token)
            ddp = slot.ddp()
            if ddp is not None and getattr(ddp, "device_type", "") == "cpu":
                collectives.on_done(
                    future, lambda: probe.bucket_reduced(flags, handle, index, token))
    except Exception:
        guest.failed("ddp.hook")
    return future


def _builtin_all_reduce(pg, bucket):
    tensor = bucket.buffer()
    tensor.div_(pg.size())
    work = sys.modules["torch.distributed"].all_reduce(tensor, group=pg, async_op=True)
    return work.get_future().then(collectives.handed_over(lambda future: future.value()[0]))


def _builtin_fp16(pg, bucket):
    tensor = bucket.buffer()
    half = tensor.to(sys.modules["torch"].float16).div_(pg.size())
    work = sys.modules["torch.distributed"].all_reduce(half, group=pg, async_op=True)

    def decompress(future):
        tensor.copy_(future.value()[0])
        return tensor

    return work.get_future().then(collectives.handed_over(decompress))


_BUILTIN = {"ALLREDUCE": _builtin_all_reduce, "FP16_COMPRESS": _builtin_fp16}


# the place ----------------------------------------------------------------------------


def _on_gloo(ddp):
    return (getattr(ddp, "device_type", "") == "cpu"
            and groups.backend_of(ddp.process_group, "cpu") == "gloo"
            and not getattr(ddp, "_use_python_reducer", False)
            and getattr(ddp, "mixed_precision", None) is None)


def _why_not(ddp):
    if not _on_gloo(ddp):
        return "the backend is not gloo on CPU"
    if ddp._join_config.enable:
        return "join() is in use"
    n = ddp.process_group.size()
    if getattr(ddp, "gradient_as_bucket_view", False) and n & (n - 1):
        return "gradient_as_bucket_view divides in another way than by a reciprocal"
    if any(getattr(m, "sparse", False) for m in ddp.module.modules()):
        return "sparse gradients"
    return ""


def _take_place(ddp, slot):
    if slot.holder == "":
        reason = _why_not(ddp)
        if reason:
            slot.holder = "declined"
            guest.record("meta.probe", {"source": "ddp.hook", "state": "off", "error": reason,
                                        "ddp": slot.index})
        else:
            _plain["_register_comm_hook"](ddp.reducer, slot, _hook)
            slot.holder = "ours"
    if slot.holder in ("declined", "builtin") and slot.layout is not None:
        (buckets, sizes), slot.layout = slot.layout, None
        # Gradients come in the reverse of DDP's order, until it has looked at the real one.
        _mark_parameters(ddp, slot, _parameters(ddp), [min(b) for b in buckets], sizes)


def _register(reducer, state, hook):
    slot = _slot_of_reducer(reducer)
    if slot.holder == "ours":
        if slot.user is None:
            slot.user = (state, hook)
            return
    elif slot.holder in ("", "declined"):
        _plain["_register_comm_hook"](reducer, state, _tracer(slot, hook))
        slot.holder = "user"
        _unmark(slot)
        return
    _plain["_register_comm_hook"](reducer, state, hook)  # torch says that there is one


def _tracer(slot, hook):
    @functools.wraps(hook)
    def traced(state, bucket):
        return _traced(slot, hook, state, bucket)

    return traced


def _register_builtin(reducer, kind):
    slot = _slot_of_reducer(reducer)
    ddp = slot.ddp()
    same = _BUILTIN.get(getattr(kind, "name", str(kind).rsplit(".", 1)[-1]))
    if ddp is not None and same is not None and slot.user is None:
        if slot.holder == "" and _on_gloo(ddp):
            _plain["_register_comm_hook"](reducer, slot, _hook)
            slot.holder = "ours"
        if slot.holder == "ours":
            slot.user = (slot.pg, same)
            return
    _plain["_register_builtin_comm_hook"](reducer, kind)
    if slot.holder in ("", "declined"):
        slot.holder = "builtin"


# installation -------------------------------------------------------------------------


def watch(module):
    """Right after torch.nn.parallel.distributed."""
    cls = module.DistributedDataParallel
    plain_init = cls.__init__

    @functools.wraps(plain_init)
    def __init__(self, *args, **kwargs):
        plain_init(self, *args, **kwargs)
        try:
            _slot_of(self)
        except Exception:
            guest.failed("ddp")

    cls.__init__ = __init__
    guest.install("ddp.hook", _watch_forward, module.Join, cls)


def _watch_forward(join, cls):
    """Every forward of a DDP announces itself here, whatever calls it and however deep."""
    plain = join.notify_join_context

    @functools.wraps(plain)
    def notify_join_context(joinable):
        work = plain(joinable)
        if not guest.is_compiling() and isinstance(joinable, cls):
            try:
                slot = _slot_of(joinable)
                slot.join_work = work
                if joinable.training and sys.modules["torch"].is_grad_enabled():
                    _take_place(joinable, slot)
                    _look_for_rebuilt(joinable, slot)
            except Exception:
                guest.failed("ddp.hook")
        return work

    join.notify_join_context = staticmethod(notify_join_context)


def watch_package(dist):
    """Right after torch.distributed, whose names DDP uses."""
    for name in ("_register_comm_hook", "_register_builtin_comm_hook",
                 "_compute_bucket_assignment_by_size"):
        _plain[name] = getattr(dist, name)

    def assign(*args, **kwargs):
        result = _plain["_compute_bucket_assignment_by_size"](*args, **kwargs)
        try:
            buckets = result[0] if isinstance(result, tuple) else result
            _layout.buckets = [list(b) for b in reversed(buckets)]
        except Exception:
            _layout.buckets = None
        return result

    dist._register_comm_hook = _register
    dist._register_builtin_comm_hook = _register_builtin
    dist._compute_bucket_assignment_by_size = assign
