"""Log records and uncaught exceptions, stamped with rank and time by where they go.

No handler is added: logging.basicConfig() does nothing once the root logger has one.
"""
import functools
import sys
import threading

from . import guest
from .guest import MAX_TEXT_BYTES, TEXT_EXCEPTION, TEXT_LOG, probe

_last = None  # the exception told last


def watch_logging(logging):
    plain = logging.Logger.callHandlers
    busy = threading.local()

    @functools.wraps(plain)
    def callHandlers(self, record):
        if not getattr(busy, "on", False) and probe.level():
            busy.on = True
            try:
                probe.text(TEXT_LOG, record.levelno, "%s\t%s" % (record.name, _message(record)))
            except Exception:
                guest.failed("logging")
            finally:
                busy.on = False
        return plain(self, record)

    logging.Logger.callHandlers = callHandlers


def _message(record):
    text = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        import traceback

        text += "\n" + traceback.format_exception_only(*record.exc_info[:2])[-1].rstrip()
    return text


def tell_exception(kind, value, tb):
    """"Type: message", then the traceback. What does not fit is cut off its outer end."""
    global _last
    try:
        if value is not None and value is _last:
            return
        _last = value
        import traceback

        head = ("%s: %s" % (kind.__name__, value))[:1500]
        room = MAX_TEXT_BYTES - len(head.encode("utf-8", "replace")) - 8
        stack = "".join(traceback.format_tb(tb, limit=-40)).encode("utf-8", "replace")
        if len(stack) > room:
            stack = b"...\n" + stack[-(room - 4):]
        probe.text(TEXT_EXCEPTION, 40, "%s\n%s" % (head, stack.decode("utf-8", "ignore")))
    except Exception:
        guest.failed("exception")


def watch_exceptions():
    plain = sys.excepthook

    def excepthook(kind, value, tb):
        tell_exception(kind, value, tb)
        plain(kind, value, tb)

    sys.excepthook = excepthook

    plain_thread = threading.excepthook

    def thread_excepthook(args):
        if args.exc_type is not SystemExit:
            tell_exception(args.exc_type, args.exc_value, args.exc_traceback)
        plain_thread(args)

    threading.excepthook = thread_excepthook


def finish():
    """The program may have put its own hook in place of ours: Python keeps the exception."""
    value = getattr(sys, "last_value", None)
    if value is not None:
        tell_exception(getattr(sys, "last_type", type(value)), value,
                       getattr(sys, "last_traceback", None))
