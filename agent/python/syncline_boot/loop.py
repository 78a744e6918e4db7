"""Steps and phases of the training loop, seen from the calls a loop cannot avoid.

A step ends when its pacemaker has stepped: the first optimizer seen to step, or, where no
optimizer is, the module that the loop calls from outside. Phases belong to the loop's
thread: workers and prefetchers that run modules or loaders of their own are not the loop.

The forward is seen by one global module hook that is armed only while no module runs: the
outermost call takes it away and leaves a hook of its own on that module until it returns.
Modules inside pay nothing, and nothing of ours is left on a module that is saved.
"""
import functools
import sys
import threading
import weakref

from . import guest
from .guest import probe

DATA, FORWARD, BACKWARD, OPTIMIZER, EVAL = 1, 2, 3, 4, 5

KEY = -7421  # torch's own hook ids count up from 0

# So many steps of one other optimizer (or forwards of another module) without the pacemaker: it
# is not in use any more. Counted, not timed, so that all ranks decide alike.
PACE_LOST = 3
# So many forwards with an optimizer that never steps: the loop updates by other means.
FORWARDS_LOST = 256

get_ident = threading.get_ident
phase_begin = probe.phase_begin
phase_end = probe.phase_end

_untouched = ()  # classes whose forward looks whether they have hooks
_pre_hooks = {}  # torch.nn.modules.module._global_forward_pre_hooks once torch is here


class Loop:
    def __init__(self):
        self.thread = threading.main_thread().ident
        self.phase = 0  # of the outermost module's call
        self.top = None  # the module whose forward runs
        self.in_data = 0  # the open data phase, 0 = none
        self.in_backward = False
        self.after_backward = False  # the next forward begins a micro-batch
        self.opt = None  # the optimizer whose step runs
        self.opt_depth = 0  # steps inside it
        self.n_optimizers = 0
        self.pacer = None  # weak: the pacemaker
        self.paced_by = ""  # "optimizer" or "forward"
        self.others = {}  # id of another pacemaker -> its steps since the pacemaker's
        self.n_forwards = 0
        self.seen_training = False


loop = Loop()


def _arm():
    if loop.top is None and not loop.in_backward and not loop.in_data:
        _pre_hooks[KEY] = _enter


def _disarm():
    _pre_hooks.pop(KEY, None)


def _new_micro():
    if loop.after_backward:
        loop.after_backward = False
        probe.micro()


def _step():
    loop.after_backward = False
    if loop.others:
        loop.others.clear()
    probe.step()


def _takes_over(other):
    """Another one has stepped: is it the pacemaker from now on?"""
    n = loop.others[id(other)] = loop.others.get(id(other), 0) + 1
    if loop.pacer is not None and n < PACE_LOST:
        return False
    loop.pacer = weakref.ref(other)
    return True


# forward ------------------------------------------------------------------------------


def _enter(module, args):
    """Global forward pre-hook: a module is called from outside any other."""
    if guest.is_compiling():
        return
    try:
        if get_ident() != loop.thread or isinstance(module, _untouched):
            return
        training = module.training
        if loop.paced_by != "optimizer":
            _pace_by_forward(module, training)
        if training:
            loop.seen_training = True
        _disarm()
        module._forward_hooks[KEY] = _leave
        loop.top = module
        if training or not loop.seen_training and not loop.n_optimizers:
            loop.phase = FORWARD
            _new_micro()
        else:
            loop.phase = EVAL
        phase_begin(loop.phase)
    except Exception:
        guest.failed("forward")
        loop.top = None


def _leave(module, args, output):
    if guest.is_compiling():
        return
    try:
        if module is loop.top:
            _close_forward()
    except Exception:
        guest.failed("forward")


def _close_forward():
    module, loop.top = loop.top, None
    phase_end(loop.phase)
    module._forward_hooks.pop(KEY, None)
    _arm()


def _pace_by_forward(module, training):
    """No optimizer has stepped so far: does this forward begin a step?"""
    loop.n_forwards += 1
    if loop.n_optimizers and loop.n_forwards <= FORWARDS_LOST:
        return
    if not training and (loop.seen_training or loop.n_optimizers):
        return  # an evaluation
    if loop.pacer is None:
        _takes_over(module)  # what came before belongs to the first step
        loop.paced_by = "forward"
    elif loop.pacer() is module or _takes_over(module):
        _step()


def _rescue():
    """An exception left a forward or an optimizer's step open; the loop went on."""
    try:
        if loop.top is not None:
            _close_forward()
        if loop.opt is not None:
            loop.opt = None
            loop.opt_depth = 0
            phase_end(OPTIMIZER)
    except Exception:
        guest.failed("rescue")


def watch_modules(module):
    global _pre_hooks
    _pre_hooks = module._global_forward_pre_hooks
    plain = getattr(module, "_has_any_global_hook", None)
    if plain is not None:
        # A compiled module warns its user about global hooks; ours is none of theirs.
        @functools.wraps(plain)
        def _has_any_global_hook():
            ours = _pre_hooks.pop(KEY, None)
            try:
                return plain()
            finally:
                if ours is not None:
                    _pre_hooks[KEY] = ours

        module._has_any_global_hook = _has_any_global_hook
    _arm()


def spare(nn):
    """These take a fast path of slightly other rounding only when they have no hooks."""
    global _untouched
    names = ("TransformerEncoderLayer", "TransformerEncoder", "MultiheadAttention")
    _untouched = tuple(getattr(nn, n) for n in names if hasattr(nn, n))


# backward -----------------------------------------------------------------------------


def watch_backward(autograd):
    plain = autograd.backward

    @functools.wraps(plain)
    def backward(*args, **kwargs):
        if guest.is_compiling() or loop.in_backward or get_ident() != loop.thread:
            return plain(*args, **kwargs)
        loop.in_backward = True
        _disarm()
        phase_begin(BACKWARD)
        try:
            return plain(*args, **kwargs)
        finally:
            loop.in_backward = False
            loop.after_backward = True
            phase_end(BACKWARD)
            _arm()

    autograd.backward = backward


# data ---------------------------------------------------------------------------------


def watch_data(module):
    grad_enabled = sys.modules["torch"].is_grad_enabled

    def wrap(owner, name):
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def data(*args, **kwargs):
            if loop.in_data or loop.in_backward or get_ident() != loop.thread:
                return plain(*args, **kwargs)
            if loop.top is not None or loop.opt is not None:
                _rescue()
            # Without gradients it is an evaluation's data: no part of a step's input wait.
            phase = DATA if grad_enabled() else EVAL
            loop.in_data = phase
            _disarm()
            if phase == DATA:
                _new_micro()
            phase_begin(phase)
            try:
                return plain(*args, **kwargs)
            finally:
                loop.in_data = 0
                phase_end(phase)
                _arm()

        setattr(owner, name, data)

    wrap(module._BaseDataLoaderIter, "__next__")
    wrap(module.DataLoader, "__iter__")  # starts the workers and waits for them


# optimizer ----------------------------------------------------------------------------


def _opt_enter(opt):
    if get_ident() != loop.thread:
        if loop.paced_by:
            return
        loop.thread = get_ident()  # the loop runs on this thread
    if loop.opt is not None:
        loop.opt_depth += 1
        return
    if loop.top is not None:
        _rescue()
    loop.opt = opt
    loop.opt_depth = 0
    phase_begin(OPTIMIZER)


def _opt_leave(opt):
    if loop.opt is None or get_ident() != loop.thread:
        return
    if loop.opt_depth > 0:
        loop.opt_depth -= 1
        return
    loop.opt = None
    phase_end(OPTIMIZER)
    if loop.paced_by != "optimizer":
        loop.paced_by = "optimizer"
        loop.pacer = None
    pacer = loop.pacer() if loop.pacer is not None else None
    if pacer is opt or _takes_over(opt):
        _step()


def watch_optimizers(module):
    cls = module.Optimizer
    hooked = hasattr(module, "register_optimizer_step_pre_hook")
    plain_init = cls.__init__

    @functools.wraps(plain_init)
    def __init__(self, *args, **kwargs):
        plain_init(self, *args, **kwargs)
        try:
            loop.n_optimizers += 1
            if not hooked:
                _wrap_step(type(self))
        except Exception:
            guest.failed("optimizer")

    if hooked:
        module.register_optimizer_step_pre_hook(_before_step)
        module.register_optimizer_step_post_hook(_after_step)
    cls.__init__ = __init__


def _before_step(opt, args, kwargs):
    if guest.is_compiling():
        return
    try:
        _opt_enter(opt)
    except Exception:
        guest.failed("optimizer")


def _after_step(opt, args, kwargs):
    if guest.is_compiling():
        return
    try:
        _opt_leave(opt)
    except Exception:
        guest.failed("optimizer")


def _wrap_step(cls):
    plain = cls.step
    if getattr(plain, "_syncline", False):
        return

    @functools.wraps(plain)
    def step(self, *args, **kwargs):
        _before_step(self, args, kwargs)
        try:
            result = plain(self, *args, **kwargs)
        except BaseException:
            if loop.opt is self:
                _rescue()  # no step was made
            raise
        _after_step(self, args, kwargs)
        return result

    step._syncline = True
    cls.step = step


def finish():
    """The process leaves. A loop paced by forwards has nothing after its last one."""
    if loop.paced_by == "forward":
        probe.last_step()
