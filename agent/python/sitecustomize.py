"""Runs in every Python that has this folder on PYTHONPATH; traces only ranks.

A sitecustomize hides the next one on the path (Debian ships one in the standard
library): that one runs first, and what it raises is raised as if we were not here.
"""
import os
import sys

# With a node's RANK in the environment (a Kubernetes pod) these are no rank; what they start is.
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate",
              "accelerate.commands.launch", "deepspeed", "deepspeed.launcher.launch")


def _run_shadowed():
    from importlib import machinery, util

    # Folders of all copies of this file that have run: two of them must not call each other.
    seen = sys.__dict__.setdefault("_syncline_seen", set())
    seen.add(os.path.dirname(os.path.realpath(__file__)))
    path = [p for p in sys.path if os.path.realpath(p or os.curdir) not in seen]
    spec = machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _boot():
    environ = os.environ
    if "RANK" not in environ or environ.get("SYNCLINE_OFF", "0") not in ("", "0"):
        return
    # A child of a rank (a data-loader worker, a compiler) inherits RANK, but not our pid.
    if environ.get("SYNCLINE_RANK_PID", str(os.getpid())) != str(os.getpid()):
        return
    try:
        program = sys.orig_argv[1:4]
        if any(os.path.basename(a) in _LAUNCHERS for a in program):
            return
        import syncline_boot

        syncline_boot.start()
    except Exception:
        pass


try:
    _run_shadowed()
finally:
    _boot()
