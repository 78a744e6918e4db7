"""What a catalogue of `syncline sim` holds, as work with starts and ends on the case's own time (ns)."""
import json
import sqlite3
import struct

RAW0 = 2_000_000_000_000_000
REAL0 = 1_700_000_000_000_000_000
STEP_UNKNOWN = 2**32 - 1
(STEP_BEGIN, STEP_END, PHASE_BEGIN, PHASE_END, COLL_BEGIN, COLL_END) = range(1, 7)
(WORK_BEGIN, WORK_END, WAIT_BEGIN, WAIT_END) = range(10, 14)
(LAUNCH, KERNEL_BEGIN, KERNEL_END, STREAM_WAIT, COLL_SUBMIT) = range(32, 37)


def column(data, at, n):
    """One column of a chunk (proto/chunk.h): its values and where the next begins."""
    width, mode, _, n_bytes, base = struct.unpack_from("<BBHIQ", data, at)
    at += 16
    raw = [int.from_bytes(data[at + i * width:at + (i + 1) * width], "little") for i in range(n)]
    values = []
    for v in raw:
        if mode == 1:
            base = (base + (v >> 1 ^ -(v & 1))) % 2**64
            values.append(base)
        else:
            values.append((base + v) % 2**64)
    return values, at + (n_bytes + 7) // 8 * 8


def events(data):
    """(time, kind, flags, name, step, low, b) of each event of a chunk."""
    magic, version, n, _, _, _ = struct.unpack_from("<IHHQqq", data, 0)
    assert (magic, version) == (0x314B4353, 1)
    columns, at = [], 32
    for _ in range(7):
        values, at = column(data, at, n)
        columns.append(values)
    assert at == len(data)
    columns[6] = [v >> 1 | (v & 1) << 63 for v in columns[6]]
    return list(zip(*columns))


class Rank:
    def __init__(self):
        self.launches = {}    # number -> (time, stream, name, step)
        self.device = {}      # number -> [start, end]; None = did not happen
        self.calls = {}       # number -> [(flags, group, seq)]: one, or several of a message node
        self.roots = {}       # number -> root of the call
        self.bytes = {}       # (group, seq) -> bytes
        self.waits = {}       # number -> the launches of other streams that it waits for
        self.work = []        # [name, start, end] of the host
        self.host_waits = []  # [launch or 0, start, end]
        self.steps = []       # [number, start, end]
        self.phases = []      # [phase, micro-batch, start, end]
        self.left = None


class Tale:
    """ranks[n] with times as the probe stamped them, minus the instant at which every case begins."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.ranks = {}
        self.process = {}
        for process, rank, state, at in self.db.execute("SELECT process_id, rank, state, state_at_ns FROM raw_process"):
            self.process[process] = self.ranks[rank] = Rank()
            if state == "left":
                self.ranks[rank].left = at - RAW0
        self.names = {(p, i): t for p, i, t in self.db.execute("SELECT process_id, id, text FROM raw_name")}
        rows = self.db.execute("SELECT process_id, ring, first_index, data FROM raw_chunk ORDER BY process_id, ring, first_index")
        self._expect = {}
        begun = {}
        for process, ring, first, data in rows:
            for e in events(data):
                self._take(process, begun, *e)
            key = process, ring
            assert first == self._expect.get(key, 0), "a hole in a ring"
            self._expect[key] = first + struct.unpack_from("<H", data, 6)[0]

    def _take(self, process, begun, t, kind, flags, name, step, low, b):
        r, t = self.process[process], t - RAW0
        name = self.names.get((process, name), "")
        step = None if step == STEP_UNKNOWN else step
        if kind == LAUNCH:
            assert low == len(r.launches) + 1
            r.launches[low] = (t, flags, name, step)
            r.device[low] = [None, None]
        elif kind == COLL_SUBMIT:
            root, b = (b >> 32) - 1, b & 0xFFFFFFFF
            r.calls.setdefault(b, []).append((flags, name, low))
            begun[process, name, low, flags] = b
            if root >= 0:
                r.roots[b] = root
        elif kind == STREAM_WAIT:
            r.waits.setdefault(low, []).append(b)
        elif kind in (KERNEL_BEGIN, KERNEL_END):
            r.device[low][kind - KERNEL_BEGIN] = t
        elif kind in (COLL_BEGIN, COLL_END):
            number, end = begun[process, name, low, flags], kind - COLL_BEGIN
            assert r.device[number][end] in (None, t), "calls of one launch begin and end as one"
            r.device[number][end] = t
            r.bytes[name, low] = b
        elif kind == WORK_BEGIN:
            r.work.append([name, t, None])
        elif kind == WORK_END:
            r.work[-1][2] = t
        elif kind == WAIT_BEGIN:
            r.host_waits.append([low, t, None])
        elif kind == WAIT_END:
            r.host_waits[-1][2] = t
        elif kind == STEP_BEGIN:
            r.steps.append([step, t, None])
        elif kind == STEP_END:
            assert r.steps[-1][0] == step
            r.steps[-1][2] = t
        elif kind == PHASE_BEGIN:
            r.phases.append([flags, low, t, None])
        elif kind == PHASE_END:
            r.phases[-1][3] = t
        else:
            raise AssertionError(f"kind {kind}")

    def records(self):
        return [(rank, category, json.loads(fields), at - REAL0)
                for rank, category, fields, at in self.db.execute("SELECT rank, category, fields, at_ns FROM record ORDER BY at_ns, rank")]

    def gauges(self):
        return [(rank, name, value, at - REAL0)
                for rank, name, value, at in self.db.execute("SELECT rank, name, value, at_ns FROM gauge ORDER BY at_ns, rank")]

    def logs(self):
        return [(rank, level, logger, text, at - REAL0)
                for rank, level, logger, text, at in self.db.execute("SELECT rank, level, logger, text, at_ns FROM log ORDER BY at_ns, rank")]

    def close(self):
        self.db.close()
