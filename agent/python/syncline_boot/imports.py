"""Run a function once a module has been imported, without importing it ourselves.

A finder at the head of the meta path looks up the module as the others would and lets
the loader call us after it has executed the module. The loader is put back as it was.
"""
import sys

from . import guest


class _Finder:
    def __init__(self):
        self.waiting = {}  # module name -> [(source, function)]
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self.watch(name, spec)
                    return spec
            return None
        finally:
            self.busy.discard(name)

    def watch(self, name, spec):
        try:
            loader = spec.loader
            plain = loader.exec_module

            def exec_module(module):
                try:
                    del loader.exec_module
                except AttributeError:
                    pass
                plain(module)
                self.loaded(name, module)

            loader.exec_module = exec_module
        except Exception:
            guest.failed("import:" + name)

    def loaded(self, name, module):
        for source, function in self.waiting.pop(name, ()):
            guest.install(source, function, module)
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)


_finder = _Finder()


def after(name, source, function):
    """function(module) right after `name` is imported, now if it is already."""
    module = sys.modules.get(name)
    if module is not None:
        guest.install(source, function, module)
        return
    _finder.waiting.setdefault(name, []).append((source, function))
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
