"""What every source of the bootstrap needs: the probe, records, and a place for failures.

The guest rule in Python: a hook swallows what it raises itself, counts it here, and goes
on; a source that cannot be installed is off and said to be off. Nothing is printed.
"""
import json
import sys

import _syncline_probe as probe

TEXT_LOG = 1
TEXT_EXCEPTION = 2
TEXT_RECORD = 3
MAX_TEXT_BYTES = 4096

_failures = {}  # source -> [count, first error]


def failed(source):
    """Count the exception being handled; the first of a source is recorded."""
    try:
        kind, value, _ = sys.exc_info()
        entry = _failures.setdefault(source, [0, ""])
        entry[0] += 1
        if entry[0] == 1:
            entry[1] = "%s: %s" % (kind.__name__ if kind else "?", str(value)[:500])
            record("meta.probe", {"source": source, "state": "failed", "error": entry[1]})
    except Exception:
        pass


def install(source, function, *args):
    """Install a source; one that cannot be is off, the others go on."""
    try:
        function(*args)
        return True
    except Exception as e:
        record("meta.probe", {"source": source, "state": "off",
                              "error": "%s: %s" % (type(e).__name__, str(e)[:500])})
        return False


def failures():
    return {source: entry[0] for source, entry in _failures.items()}


def record(category, fields):
    """One fact as JSON. Too many fields for one record: several, each with some of them."""
    try:
        text = json.dumps({"c": category, "f": fields}, ensure_ascii=False, default=str)
        if len(text.encode("utf-8", "replace")) <= MAX_TEXT_BYTES:
            probe.text(TEXT_RECORD, 0, text)
        elif len(fields) > 1:
            items = list(fields.items())
            half = len(items) // 2
            record(category, dict(items[:half]))
            record(category, dict(items[half:]))
        else:
            (key, value), = fields.items()
            record(category, {key: "%s..." % str(value)[:900]})
    except Exception:
        pass


def is_compiling():
    """Replaced by torch's own where it has one: code that TorchDynamo traces must not
    reach the probe, and dynamo reads that call as a constant."""
    return False


def learn_compiling(torch):
    global is_compiling
    own = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    if own is not None:
        is_compiling = own
