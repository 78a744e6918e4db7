#!/usr/bin/env python3
"""No two of our object files define one global name: the linker takes the first it meets in a library, without a word.

check_symbols.py BUILD_FOLDER"""
import collections
import pathlib
import subprocess
import sys

# Programs of their own, and libraries that are loaded on their own.
APART = ("tests/", "agent/probe")


def main():
    build = pathlib.Path(sys.argv[1])
    objects = [p for p in build.rglob("*.o") if not str(p.relative_to(build)).startswith(APART) and "meson-private" not in p.parts]
    found = collections.defaultdict(list)
    for p in objects:
        out = subprocess.run(["nm", "-g", "--defined-only", p], text=True, stdout=subprocess.PIPE, check=True).stdout
        for line in out.splitlines():
            kind, name = line.split()[-2:]
            if kind in "TDBR" and not name.startswith("__"):
                found[name].append(str(p.relative_to(build)))
    twice = {n: where for n, where in found.items() if len(where) > 1 and n != "main"}
    for name, where in sorted(twice.items()):
        print(f"{name}: {', '.join(where)}")
    print(f"{len(objects)} object files, {len(found)} names, {len(twice)} of them twice")
    return 1 if twice or not objects else 0


sys.exit(main())
