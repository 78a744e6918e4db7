"""Who and where this process is: identity, and the environment by allow-list.

Only what is listed here leaves the process. A variable whose name sounds like a secret is
told as set or not set, and credentials inside an address are cut out.
"""
import os
import re
import sys
import time

from . import guest
from .guest import probe

_PREFIXES = ("NCCL_", "TORCH", "PYTORCH_", "GLOO_", "MASTER_", "OMP_", "SYNCLINE_LEVEL")
_NAMES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK",
    "ROLE_NAME", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TP_SOCKET_IFNAME",
    "FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES", "TZ", "LANG", "LC_ALL", "LC_CTYPE",
    "LC_NUMERIC", "PYTHONHASHSEED", "SLURM_NODEID", "SLURM_PROCID", "SLURM_NNODES",
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|API_?KEY|PRIVATE|_KEY$|COOKIE")
_USER_IN_URL = re.compile(r"//[^/@\s]*@")


def number(name, default=-1):
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return default


def identify(rank, world_size):
    """rank and world size as the process group knows them, the rest from the launcher."""
    environ = os.environ
    probe.identity(rank, number("LOCAL_RANK"), world_size, number("LOCAL_WORLD_SIZE"),
                   max(number("TORCHELASTIC_RESTART_COUNT", 0), 0),
                   environ.get("SYNCLINE_RUN") or environ.get("TORCHELASTIC_RUN_ID"))


def allowed(environ):
    out = {}
    for name in sorted(environ):
        if not (name in _NAMES or name.startswith(_PREFIXES)):
            continue
        if _SECRET.search(name):
            out[name] = "(set)"
        else:
            out[name] = _USER_IN_URL.sub("//***@", environ[name])[:500]
    return out


def endpoint(init_method):
    """Where the ranks meet, without query or credentials."""
    if init_method and not str(init_method).startswith("env:"):
        return _USER_IN_URL.sub("//***@", str(init_method).split("?", 1)[0])[:200]
    return "%s:%s" % (os.environ.get("MASTER_ADDR", "?"), os.environ.get("MASTER_PORT", "?"))


def _read(path, n_bytes=65536):
    try:
        with open(path, "rb") as f:
            return f.read(n_bytes).decode("utf-8", "replace")
    except OSError:
        return ""


def _cpu_model():
    for line in _read("/proc/cpuinfo", 4096).splitlines():
        if line.startswith(("model name", "Model", "cpu model")):
            return line.split(":", 1)[1].strip()
    return ""


def _gpus():
    """From the driver's own files: asking CUDA would make a context in this process."""
    base = "/proc/driver/nvidia/gpus"
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    out = []
    for name in names[:64]:
        for line in _read("%s/%s/information" % (base, name), 4096).splitlines():
            if line.startswith("Model:"):
                out.append(line.split(":", 1)[1].strip())
    return out


def tell():
    uname = os.uname()
    fields = allowed(os.environ)
    fields.update({
        "host": uname.nodename,
        "kernel": "%s %s %s" % (uname.sysname, uname.release, uname.machine),
        "timezone": "%s %s" % ("/".join(time.tzname), time.strftime("%z")),
        "locale": os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE")
        or os.environ.get("LANG") or "C",
    })
    guest.record("meta.env", fields)
    memory = re.search(r"MemTotal:\s+(\d+) kB", _read("/proc/meminfo", 4096))
    fields = {"cpu": _cpu_model(), "n_cpus": os.cpu_count(),
              "n_cpus_allowed": len(os.sched_getaffinity(0)),
              "memory_gb": round(int(memory.group(1)) / 1e6, 1) if memory else None}
    gpus = _gpus()
    if gpus:
        fields["gpu"] = gpus
    guest.record("meta.device", fields)


def _driver():
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", _read("/proc/driver/nvidia/version", 512))
    return found.group(1) if found else None


_told = None


def tell_versions(_module=None):
    """Once torch is there, and again when something changed (numpy may come later)."""
    global _told
    torch = sys.modules.get("torch")
    if torch is None:
        return
    version = getattr(torch, "version", None)
    numpy = sys.modules.get("numpy")
    fields = {
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "cuda": getattr(version, "cuda", None),
        "hip": getattr(version, "hip", None),
        "numpy": getattr(numpy, "__version__", None),
        "driver": _driver(),
        "nccl": _nccl(torch),
        "loaded_from": os.path.dirname(getattr(torch, "__file__", None) or ""),
    }
    fields = {k: v for k, v in fields.items() if v}
    if fields != _told:
        _told = fields
        guest.record("meta.versions", fields)


def _nccl(torch):
    """The library's own word; reading it makes no context."""
    try:
        version = torch.cuda.nccl.version()
    except Exception:
        return None
    return ".".join(str(x) for x in version) if isinstance(version, tuple) else str(version)
