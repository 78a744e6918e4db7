"""The bootstrap: makes a PyTorch program tell what it does, without a change to it.

sitecustomize.py calls start() in a process that is a rank. Nothing here imports torch;
each source is installed when the program imports the module that it watches.
"""
import atexit
import os


_pid = 0  # of the process that is traced


def start():
    """True when this process is traced."""
    global _pid
    from . import guest

    if _pid == os.getpid():
        return True
    if not guest.probe.start():
        return False
    _pid = os.getpid()
    # Children inherit the environment: this is how they know that they are not the rank.
    os.environ["SYNCLINE_RANK_PID"] = str(os.getpid())

    from . import collectives, ddp, env, imports, logs, loop

    env.identify(env.number("RANK"), env.number("WORLD_SIZE"))
    guest.install("env", env.tell)
    guest.install("exceptions", logs.watch_exceptions)
    atexit.register(_finish)

    after = imports.after
    after("logging", "logging", logs.watch_logging)
    after("torch", "compiler", guest.learn_compiling)
    after("torch", "versions", env.tell_versions)
    after("torch.nn.modules.module", "forward", loop.watch_modules)
    after("torch.nn", "forward.spare", loop.spare)
    after("torch.autograd", "backward", loop.watch_backward)
    after("torch.utils.data.dataloader", "data", loop.watch_data)
    after("torch.optim.optimizer", "optimizer", loop.watch_optimizers)
    after("torch.distributed.distributed_c10d", "collectives", collectives.watch)
    after("torch.distributed", "collectives.ddp", collectives.watch_package)
    after("torch.distributed", "ddp.place", ddp.watch_package)
    after("torch.nn.parallel.distributed", "ddp", ddp.watch)
    return True


def _finish():
    if os.getpid() != _pid:
        return
    from . import collectives, guest, logs, loop

    for source, function in (("exceptions", logs.finish), ("loop", loop.finish),
                             ("collectives", collectives.finish)):
        guest.install(source, function)
    failures = guest.failures()
    if failures:
        guest.record("meta.probe", {"source": "all", "state": "finished", "failures": failures})
