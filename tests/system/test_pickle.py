#!/usr/bin/env python3
"""The importers' pickle loader against Python's own: hundreds of drawn plain values in every protocol come out as
Python's own reading of them, and whatever has code in it is refused by its name.

Its argument is the program pickle_json."""
import collections
import io
import json
import math
import os
import pathlib
import pickle
import pickletools
import random
import string
import subprocess
import sys
import unittest

PROGRAM = os.environ.get("PICKLE_JSON", "")


def load(*pickles):
    """What the loader makes of each: (value, None) or (None, why)."""
    given = b"".join(len(p).to_bytes(8, "little") + p for p in pickles)
    r = subprocess.run([PROGRAM], input=given, capture_output=True, timeout=120)
    assert r.returncode == 0, r
    lines = r.stdout.decode().split("\n")[:-1]
    assert len(lines) == len(pickles)
    return [(None, x[1:]) if x.startswith("!") else (json.loads(x), None) for x in lines]


def plain(v):
    """What the loader promises for v."""
    if isinstance(v, dict):
        return {key(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, (set, frozenset)):
        return sorted((plain(x) for x in v), key=json.dumps)
    if isinstance(v, bytes):
        try:
            return v.hex() if 0 in v else v.decode()
        except UnicodeDecodeError:
            return v.hex()
    if isinstance(v, str):
        return v.replace("\0", "\ufffd")
    if isinstance(v, float) and not math.isfinite(v):
        return None
    if isinstance(v, int) and not isinstance(v, bool) and not -2 ** 63 <= v < 2 ** 63:
        return str(v)
    return v


def key(k):
    return plain(k) if isinstance(k, (str, bytes)) else json.dumps(plain(k))


def same(v, got):
    """Sets have no order."""
    if isinstance(v, dict):
        return isinstance(got, dict) and len({key(k) for k in v}) == len(got) and \
            all(key(k) in got and same(x, got[key(k)]) for k, x in v.items())
    if isinstance(v, (list, tuple)):
        return isinstance(got, list) and len(v) == len(got) and all(map(same, v, got))
    if isinstance(v, (set, frozenset)):
        return isinstance(got, list) and plain(v) == sorted(got, key=json.dumps)
    want = plain(v)
    return type(want) is type(got) and want == got


class Draw:
    def __init__(self, seed, protocol):
        self.rng = random.Random(seed)
        self.protocol = protocol
        self.made = []

    def text(self):
        n = self.rng.choice((0, 1, 3, 12, 80, 300, 70000 if self.rng.random() < 0.02 else 5))
        return "".join(self.rng.choice(string.printable + "\\\0éß€\U0001f600\u2028") for _ in range(n))

    def scalar(self):
        r = self.rng
        kinds = [lambda: None, lambda: r.random() < 0.5, lambda: r.randrange(-5, 300),
                 lambda: r.randrange(-2 ** 33, 2 ** 33), lambda: r.choice((-1, 1)) * (2 ** r.randrange(1, 900) - r.randrange(2)),
                 lambda: r.uniform(-1, 1) * 10 ** r.randrange(-300, 300), lambda: r.choice((math.inf, -math.inf, math.nan, 0.0)),
                 self.text, self.text]
        if self.protocol >= 3: # before it bytes are made by a call
            kinds.append(lambda: r.randbytes(r.choice((0, 1, 5, 300))))
        return r.choice(kinds)()

    def key(self):
        r = self.rng
        return r.choice((self.text, lambda: r.randrange(-10, 2 ** 40), lambda: "k%d" % r.randrange(5),
                         lambda: (r.randrange(3), "x"), lambda: r.uniform(0.001, 1000), lambda: None, lambda: True))()

    def value(self, depth=0):
        r = self.rng
        if self.made and r.random() < 0.08:
            return r.choice(self.made)
        if depth > 6 or r.random() < 0.3:
            return self.scalar()
        n = r.choice((0, 1, 2, 3, 4, 9))
        if depth == 1 and r.random() < 0.01:
            n = 2500 # more than a batch
            return {i: i for i in range(n)} if r.random() < 0.5 else [None] * n
        kinds = [lambda: [self.value(depth + 1) for _ in range(n)], lambda: tuple(self.value(depth + 1) for _ in range(n)),
                 lambda: {self.key(): self.value(depth + 1) for _ in range(n)}]
        if self.protocol >= 4:
            kinds += [lambda: {self.scalar() for _ in range(n)}, lambda: frozenset(r.randrange(99) for _ in range(n))]
        v = r.choice(kinds)()
        self.made.append(v)
        return v


def distinct(v):
    """No two keys, or items of a set, that are one as text."""
    if isinstance(v, dict):
        return len({key(k) for k in v}) == len(v) and all(map(distinct, v.values()))
    return all(map(distinct, v)) if isinstance(v, (list, tuple)) else True


class Plain(unittest.TestCase):
    def check(self, protocol, pickler=pickle.dumps):
        values = [v for v in (Draw(1000 * protocol + i, protocol).value() for i in range(120)) if distinct(v)]
        self.assertGreater(len(values), 90)
        pickles = [pickler(v, protocol) for v in values]
        for v, (got, why) in zip(values, load(*pickles)):
            self.assertIsNone(why)
            self.assertTrue(same(v, got), f"protocol {protocol}: {v!r:.400} came as {got!r:.400}")

    def test_every_protocol(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            self.check(protocol)

    def test_the_pickler_in_python_and_optimised_pickles(self):
        def slow(v, protocol):
            f = io.BytesIO()
            pickle._Pickler(f, protocol).dump(v)
            return f.getvalue()

        self.check(2, slow)
        self.check(4, slow)
        self.check(4, lambda v, p: pickletools.optimize(pickle.dumps(v, p)))
        self.check(0, lambda v, p: pickletools.optimize(pickle.dumps(v, p)))

    def test_texts_and_numbers_of_python_2(self):
        cases = {b"S'a\\n\\x41\\'b\\\\'\n.": "a\nA'b\\", b'S"x"\n.': "x", b"I01\n.": True, b"I-7\n.": -7,
                 b"L123456789012345678901L\n.": "123456789012345678901", b"F1e3\n.": 1000.0, b"U\x02\xc3\xa9.": "é",
                 b"T\x01\0\0\0\xff.": "ff", b"F1e400\n.": None, b"(lp0\nI1\naI2\na.": [1, 2],
                 b"(dp0\nS'a'\nI1\ns.": {"a": 1}, b"(I1\nI2\nt.": [1, 2], b"V\\u20ac\\U0001f600\xe9\\q\n.": "€\U0001f600é\\q",
                 b"X\x04\0\0\0a\xff\xc0b.": "a\ufffd\ufffdb", b"X\x03\0\0\0\xed\xa0\x80.": "\ufffd" * 3}
        for (given, want), (got, why) in zip(cases.items(), load(*cases)):
            self.assertEqual((given, got, why), (given, want, None))

    def test_a_shared_value_is_shared_and_what_holds_itself_is_refused(self):
        a = [1]
        loop, held = [], {"x": []}
        loop.append(loop)
        held["x"].append((held,))
        for protocol in range(6):
            got = load(*(pickle.dumps(v, protocol) for v in ([a, a, {"k": a}], loop, held)))
            self.assertEqual(got[0], ([[1], [1], {"k": [1]}], None))
            self.assertIn("holds itself", got[1][1])
            self.assertIn("holds itself", got[2][1])


class Call:
    def __init__(self, *made):
        self.made = made

    def __reduce__(self):
        return self.made


class Refused(unittest.TestCase):
    def test_code_is_refused_by_its_name(self):
        for protocol in range(6):
            module = os.system.__module__
            cases = ((Call(os.system, ("true",)), f"{module}.system"),
                     ({"entries": [1, {"x": Call(eval, ("1",))}]}, ".eval"),
                     (pathlib.PurePosixPath("/tmp"), "pathlib.PurePosixPath"),
                     (collections.OrderedDict(a=1), "collections.OrderedDict"),
                     (complex(1, 2), ".complex"),
                     (os.system, f"{module}.system"))
            for (v, name), (got, why) in zip(cases, load(*(pickle.dumps(v, protocol) for v, _ in cases))):
                self.assertIsNone(got)
                self.assertIn("has code in it: ", why)
                self.assertIn(name, why)

    def test_whatever_names_or_builds_is_refused(self):
        cases = {b"cposix\nsystem\n.": "has code in it: posix.system", b"(iposix\nsystem\n.": "has code in it: posix.system",
                 b"\x8c\x05posix\x8c\x06system\x93.": "has code in it: posix.system", b"NNR.": "(REDUCE)", b"NNb.": "(BUILD)",
                 b"(No.": "(OBJ)", b"NN\x81.": "(NEWOBJ)", b"NNN\x92.": "(NEWOBJ_EX)", b"\x82\x01.": "(EXT1)",
                 b"\x83\x01\0.": "(EXT2)", b"\x84\x01\0\0\0.": "(EXT4)", b"Px\n.": "outside of it (PERSID)",
                 b"NQ.": "(BINPERSID)", b"\x97.": "(NEXT_BUFFER)", b"N\x98.": "(READONLY_BUFFER)",
                 b"\x80\x06N.": "protocol 6", b"cos\nsy\x1bst\xffem\n.": "os.sy?st?em", b"\xff": "no operation"}
        for (given, want), (got, why) in zip(cases.items(), load(*cases)):
            self.assertEqual((given, got), (given, None))
            self.assertIn(want, why)

    def test_what_is_cut_off_is_said_so_at_every_byte(self):
        whole = pickle.dumps({"entries": [{"a": (1, 2.5, "x" * 300)}, b"\xff", {3, 4}], "n": 2 ** 70}, 4)
        for got, why in load(*(whole[:n] for n in range(len(whole)))):
            self.assertIsNone(got)
            self.assertTrue(why.startswith("is cut off"), why)

    def test_bent_pickles_give_a_value_or_a_sentence(self):
        rng = random.Random(7)
        whole = pickle.dumps([{"a": i, "b": [str(i)] * 3} for i in range(20)], 2)
        bent = []
        for _ in range(2000):
            b = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                b[rng.randrange(len(b))] ^= 1 << rng.randrange(8)
            bent.append(bytes(b))
        for got, why in load(*bent):
            self.assertTrue(why is None or why)

    def test_bombs(self):
        fold = b"\x80\x04]\x94" + b"".join(b"](" + b"h%c" % i * 10 + b"e\x94" for i in range(0, 30)) + b"."
        cases = {fold: "unfolds to more than", b"(" * 100 + b"l" * 100 + b".": "nested deeper than",
                 b"\x8d" + (2 ** 40).to_bytes(8, "little") + b"x.": "a text of more than",
                 b"X\xff\xff\xff\0x.": "is cut off", b"\x8b\xff\xff\xff\x7f1.": "a number of more than",
                 b"Nr\xff\xff\xff\xff.": "remembers as number", b"Nr\xff\xff\0\0.": "remembers as number",
                 b"j\0\0\0\0.": "never remembered",
                 b"a.": "takes what is not there", b"e.": "a mark that is not there", b"N(a.": "takes what is not there",
                 b"NNa.": "no container of that kind", b"}(Nu.": "a key without a value", b"(.": "takes what is not there",
                 b".": "takes what is not there", b"]2a.": "holds itself", b")Na.": "no container of that kind",
                 b"(N.": None, b"I12x\n.": "a number that is none", b"": "is cut off"}
        for (given, want), (got, why) in zip(cases.items(), load(*cases)):
            if want is None:
                self.assertEqual((got, why), (None, None))
            else:
                self.assertIn(want, why, given[:40])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else PROGRAM
    unittest.main()
