"""Collectives and messages issued from Python: arrival, and when this rank knows the end.

Every public function of torch.distributed that communicates is wrapped where it is defined,
before anything imports it. Only the outermost call counts: all_gather_object() is one
collective although it issues two. What C++ issues by itself (DDP's buckets on NCCL) is not
seen here; it is seen by no rank, so numbers still agree.
"""
import collections
import functools
import threading
import time
import weakref

from . import env, groups, guest
from .guest import probe

(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, GATHER, SCATTER, ALL_TO_ALL,
 BARRIER, SEND, RECV) = range(1, 12)
OBJECT = 12

# What the input is called; None: no tensor; OBJECT: pickled objects, whose size is not known.
# A scatter is told by what each rank receives, for only one rank has the input.
_FUNCTIONS = {
    "all_reduce": (ALL_REDUCE, "tensor"),
    "all_reduce_coalesced": (ALL_REDUCE, "tensors"),
    "all_reduce_multigpu": (ALL_REDUCE, "tensor_list"),
    "all_gather": (ALL_GATHER, "tensor"),
    "all_gather_into_tensor": (ALL_GATHER, "input_tensor"),
    "_all_gather_base": (ALL_GATHER, "input_tensor"),
    "all_gather_coalesced": (ALL_GATHER, "input_tensor_list"),
    "all_gather_multigpu": (ALL_GATHER, "input_tensor_list"),
    "all_gather_object": (ALL_GATHER, OBJECT),
    "reduce_scatter": (REDUCE_SCATTER, "input_list"),
    "reduce_scatter_tensor": (REDUCE_SCATTER, "input"),
    "_reduce_scatter_base": (REDUCE_SCATTER, "input"),
    "reduce_scatter_multigpu": (REDUCE_SCATTER, "input_tensor_lists"),
    "broadcast": (BROADCAST, "tensor"),
    "broadcast_multigpu": (BROADCAST, "tensor_list"),
    "broadcast_object_list": (BROADCAST, OBJECT),
    "reduce": (REDUCE, "tensor"),
    "reduce_multigpu": (REDUCE, "tensor_list"),
    "gather": (GATHER, "tensor"),
    "gather_object": (GATHER, OBJECT),
    "scatter": (SCATTER, "tensor"),
    "scatter_object_list": (SCATTER, OBJECT),
    "all_to_all": (ALL_TO_ALL, "input_tensor_list"),
    "all_to_all_single": (ALL_TO_ALL, "input"),
    "barrier": (BARRIER, None),
    "monitored_barrier": (BARRIER, None),
}
_MESSAGES = {
    "send": (SEND, "dst", True),
    "recv": (RECV, "src", True),
    "isend": (SEND, "dst", False),
    "irecv": (RECV, "src", False),
}

coll_begin = probe.coll_begin
coll_end = probe.coll_end

_dtypes = {}
_signature = None  # inspect.signature, imported with torch
inside = threading.local()  # .n = in a wrapped call, .first = first token in a comm hook
pending = {}  # id of a Work that has no future -> (weak reference, group, flags, token, bytes)
_callbacks = collections.deque(maxlen=256)  # weak: what a backend's thread has to call


def _learn_dtypes(torch):
    for name, code in (("float32", 1), ("float64", 2), ("float16", 3), ("bfloat16", 4),
                       ("float8_e4m3fn", 5), ("float8_e5m2", 5), ("int8", 6), ("uint8", 7),
                       ("int16", 8), ("int32", 9), ("int64", 10), ("bool", 11)):
        dtype = getattr(torch, name, None)
        if dtype is not None:
            _dtypes[dtype] = code


def measure(value):
    """Data type and bytes of a tensor or of (lists of) lists of them."""
    try:
        return _dtypes.get(value.dtype, 0), value.numel() * value.element_size()
    except AttributeError:
        dtype = n_bytes = 0
        if isinstance(value, (list, tuple)):
            for item in value:
                dtype, n = measure(item)
                n_bytes += n
        return dtype, n_bytes


def _picker(parameters, name):
    """(position, name, default) of a parameter; None when there is no such one."""
    for i, p in enumerate(parameters):
        if p.name == name:
            return i, name, None if p.default is p.empty else p.default
    return None


def _pick(picker, args, kwargs):
    i, name, default = picker
    return args[i] if i < len(args) else kwargs.get(name, default)


def _wrap_collective(plain, op, what):
    parameters = list(_signature(plain).parameters.values())
    group_at = _picker(parameters, "group")
    async_at = _picker(parameters, "async_op")
    input_at = _picker(parameters, what) if isinstance(what, str) else None
    if group_at is None or isinstance(what, str) and input_at is None:
        raise TypeError("%s has other parameters than expected" % plain.__name__)
    fixed = op << 8 | (OBJECT if what == OBJECT else 0)

    @functools.wraps(plain)
    def collective(*args, **kwargs):
        if guest.is_compiling() or getattr(inside, "n", 0):
            return plain(*args, **kwargs)
        try:
            handle = groups.handle_of(_pick(group_at, args, kwargs))
            if handle < 0:
                return _untraced(plain, args, kwargs)
            value, flags, n_bytes = None, fixed, 0
            if input_at is not None:
                value = _pick(input_at, args, kwargs)
                dtype, n_bytes = measure(value)
                flags |= dtype
            sync = not (async_at and _pick(async_at, args, kwargs))
        except Exception:
            guest.failed("collective")
            return _untraced(plain, args, kwargs)
        inside.n = 1
        token = coll_begin(handle, flags, n_bytes, sync)
        try:
            work = plain(*args, **kwargs)
        except BaseException:
            probe.coll_undo(handle, token)
            raise
        finally:
            inside.n = 0
        if getattr(inside, "first", 1) is None:
            inside.first = token
        if sync:
            coll_end(handle, flags, token, n_bytes)
        elif work is not None:
            follow(work, value, handle, flags, token, n_bytes)
        return work

    return collective


def _untraced(plain, args, kwargs):
    inside.n = 1
    try:
        return plain(*args, **kwargs)
    finally:
        inside.n = 0


def _wrap_message(plain, op, peer, sync):
    parameters = list(_signature(plain).parameters.values())
    tensor_at = _picker(parameters, "tensor")
    peer_at = _picker(parameters, peer)
    group_at = _picker(parameters, "group")
    in_group_at = _picker(parameters, "group_" + peer)

    @functools.wraps(plain)
    def message(*args, **kwargs):
        if guest.is_compiling() or getattr(inside, "n", 0):
            return plain(*args, **kwargs)
        try:
            group = _pick(group_at, args, kwargs)
            other = _pick(peer_at, args, kwargs)
            if other is None and in_group_at is not None:
                other = groups.rank_in_job(group, _pick(in_group_at, args, kwargs))
            own = groups._c10d.get_rank()
            handle = (groups.pair(group, own, other) if op == SEND
                      else groups.pair(group, other, own))
            value = _pick(tensor_at, args, kwargs)
            dtype, n_bytes = measure(value)
            flags = op << 8 | dtype
        except Exception:
            guest.failed("message")
            return plain(*args, **kwargs)
        token = coll_begin(handle, flags, n_bytes, sync)
        inside.n = 1
        try:
            work = plain(*args, **kwargs)
        except BaseException:
            probe.coll_undo(handle, token)
            raise
        finally:
            inside.n = 0
        if sync:
            coll_end(handle, flags, token, n_bytes)
        elif work is not None:
            follow(work, value, handle, flags, token, n_bytes)
        return work

    return message


# the end of an asynchronous one -------------------------------------------------------


def on_done(future, function):
    """Call function() when the future is complete, on whatever thread completes it."""

    def done(_):
        try:
            function()
        except Exception:
            guest.failed("future")

    future.add_done_callback(handed_over(done))


def handed_over(callback):
    """A function that a backend's thread will call and then let go; see finish()."""
    _callbacks.append(weakref.ref(callback))
    return callback


def follow(work, value, handle, flags, token, n_bytes):
    """A GPU's future would run our callback on a stream of its own: there wait() tells, as it
    does for messages, which have no future."""
    try:
        if groups.has_futures(handle) and not _on_gpu(value):
            try:
                future = work.get_future()
            except Exception:
                pass
            else:
                on_done(future, lambda: coll_end(handle, flags, token, n_bytes))
                return
        key = id(work)
        pending[key] = (weakref.ref(work, lambda _: pending.pop(key, None)),
                        handle, flags, token, n_bytes)
    except Exception:
        guest.failed("follow")


def _on_gpu(value):
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return getattr(value, "is_cuda", False)


def _watch_waits(work_class):
    plain = work_class.wait

    @functools.wraps(plain)
    def wait(self, *args, **kwargs):
        result = plain(self, *args, **kwargs)
        if pending:
            entry = pending.get(id(self))
            if entry is not None and entry[0]() is self:
                del pending[id(self)]
                coll_end(*entry[1:])
        return result

    work_class.wait = wait


def finish():
    """A backend's thread that needs the interpreter while it goes away takes the process
    with it (the interpreter ends such a thread, C++ calls that fatal). One may be about to
    call us, or have called us and not yet let go of the function: wait for it."""
    deadline = time.monotonic() + 1.0
    while any(c() is not None for c in _callbacks) and time.monotonic() < deadline:
        time.sleep(0.001)


# groups come and go -------------------------------------------------------------------


def _wrap_init(plain):
    parameters = list(_signature(plain).parameters.values())
    backend_at = _picker(parameters, "backend")
    method_at = _picker(parameters, "init_method")
    timeout_at = _picker(parameters, "timeout")

    @functools.wraps(plain)
    def init_process_group(*args, **kwargs):
        began = time.monotonic()
        try:
            endpoint = env.endpoint(_pick(method_at, args, kwargs))
            guest.record("init.rendezvous", {"endpoint": endpoint, "joined": False,
                                             "world": env.number("WORLD_SIZE")})
        except Exception:
            guest.failed("init")
        result = plain(*args, **kwargs)
        try:
            ms = (time.monotonic() - began) * 1e3
            c10d = groups._c10d
            groups.forget()
            world = c10d.get_world_size()
            env.identify(c10d.get_rank(), world)
            guest.record("init.rendezvous", {"endpoint": endpoint, "joined": True,
                                             "world": world, "ms": round(ms, 1)})
            timeout = _pick(timeout_at, args, kwargs)
            guest.record("init.backend", {
                "backend": str(c10d.get_backend()),
                "asked": str(_pick(backend_at, args, kwargs)),
                "timeout_ms": int(timeout.total_seconds() * 1e3) if timeout else None})
            groups.handle_of(None)
            env.tell_versions()
        except Exception:
            guest.failed("init")
        return result

    return init_process_group


def _wrap_new_group(plain):
    @functools.wraps(plain)
    def new_group(*args, **kwargs):
        result = plain(*args, **kwargs)
        try:
            groups.forget()
            if result is not None:
                groups.handle_of(result)
        except Exception:
            guest.failed("group")
        return result

    return new_group


def _wrap_destroy(plain):
    @functools.wraps(plain)
    def destroy_process_group(*args, **kwargs):
        groups.forget()
        return plain(*args, **kwargs)

    return destroy_process_group


# installation -------------------------------------------------------------------------


def watch(c10d):
    """Right after torch.distributed.distributed_c10d: nobody has taken its names yet."""
    global _signature
    from inspect import signature

    import torch

    _signature = signature
    groups.watch(c10d)
    _learn_dtypes(torch)

    def wrap(name, make, *args):
        if hasattr(c10d, name):
            guest.install("torch.distributed." + name,
                          lambda: setattr(c10d, name, make(getattr(c10d, name), *args)))

    for name, (op, what) in _FUNCTIONS.items():
        wrap(name, _wrap_collective, op, what)
    for name, (op, peer, sync) in _MESSAGES.items():
        wrap(name, _wrap_message, op, peer, sync)
    wrap("init_process_group", _wrap_init)
    wrap("destroy_process_group", _wrap_destroy)
    wrap("new_group", _wrap_new_group)
    wrap("split_group", _wrap_new_group)
    work = getattr(c10d, "Work", None) or getattr(c10d, "_Work", None)
    if work is not None:
        guest.install("torch.distributed.Work.wait", _watch_waits, work)


def watch_package(dist):
    """What DDP asks C++ for by a Python name: comparing parameters when it is built, sending
    the first rank's parameters and, each forward, buffers. All of them block the caller."""
    sizes = {}

    def wrap(name, op):
        plain = getattr(dist, name, None)
        if plain is None:
            return

        @functools.wraps(plain)
        def internal(process_group, tensors, *args, **kwargs):
            if guest.is_compiling():
                return plain(process_group, tensors, *args, **kwargs)
            handle, flags, n_bytes = -1, op << 8, 0
            try:
                handle = groups.handle_of(process_group)
                if op == BROADCAST and len(tensors):
                    key = (id(tensors[0]), len(tensors))
                    if key not in sizes:
                        sizes.clear()
                        sizes[key] = measure(tensors)
                    dtype, n_bytes = sizes[key]
                    flags |= dtype
            except Exception:
                guest.failed("collective")
            token = coll_begin(handle, flags, n_bytes, True) if handle >= 0 else None
            result = plain(process_group, tensors, *args, **kwargs)
            if token is not None:
                coll_end(handle, flags, token, n_bytes)
            return result

        setattr(dist, name, internal)

    wrap("_verify_params_across_processes", ALL_GATHER)
    wrap("_broadcast_coalesced", BROADCAST)
