"""Reads a rank's shared file (proto/shm.h) the way the agent does, for tests to compare with
what a script is known to have done. Only for files whose tail nobody moves."""
import json
import os
import struct
from collections import namedtuple

MAGIC = 0x31676E6972636E79
STEP_BEGIN, STEP_END, PHASE_BEGIN, PHASE_END, COLL_BEGIN, COLL_END = range(1, 7)
BUCKET_READY, BUCKET_SUBMIT, BUCKET_REDUCED = 7, 8, 9
DATA, FORWARD, BACKWARD, OPTIMIZER, EVAL = range(1, 6)
(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, GATHER, SCATTER, ALL_TO_ALL,
 BARRIER, SEND, RECV) = range(1, 12)
F32, I64, OBJECT = 1, 10, 12
SYNC = 1 << 63

Event = namedtuple("Event", "tick kind flags name step low b ring")
Coll = namedtuple("Coll", "op dtype group seq bytes sync step")
Text = namedtuple("Text", "kind level text")


class RingFile:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        u32, u64 = self._u32, self._u64
        if u64(0) != MAGIC or u32(8) != 1:
            raise ValueError("%s is no shared file of version 1" % path)
        self.pid = u32(24)
        self.level = u32(128)
        (self.rank, self.local_rank, self.world_size, self.local_world_size,
         self.restart_count) = struct.unpack_from("<5i", self.bytes, 196)
        self.run_id = self._string(216, 64)
        self.host = self._string(280, 64)
        self.closed = u32(384)
        self.step = u32(388)
        self.n_lost = u64(376) + u64(520) + u32(460)
        self.names = self._names()
        self.events = self._events()
        self.texts = self._texts()

    def _u32(self, at):
        return struct.unpack_from("<I", self.bytes, at)[0]

    def _u64(self, at):
        return struct.unpack_from("<Q", self.bytes, at)[0]

    def _string(self, at, n):
        return self.bytes[at:at + n].split(b"\0", 1)[0].decode()

    def _names(self):
        index_at, bytes_at = self._u64(80), self._u64(88)
        names = [""]
        for i in range(self._u32(448)):
            entry = self._u64(index_at + 8 * i)
            at, n = bytes_at + (entry >> 8), entry & 0xFF
            names.append(self.bytes[at:at + n].decode())
        return names

    def _events(self):
        headers_at, slots_at = self._u64(64), self._u64(72)
        n_slots = self._u32(60)
        out = []
        for ring in range(self._u32(56)):
            at = headers_at + 128 * ring
            head, tail = self._u64(at), self._u64(at + 64)
            self.n_lost += self._u64(at + 16)
            for i in range(tail, head):
                slot = slots_at + 32 * (ring * n_slots + (i & (n_slots - 1)))
                tick, kind, flags, name, a, b = struct.unpack_from("<QHHIQQ", self.bytes, slot)
                out.append(Event(tick, kind, flags, self.names[name], a >> 32,
                                 a & 0xFFFFFFFF, b, ring))
        return out

    def _texts(self):
        at, n = self._u64(104), self._u32(112)
        head, i = self._u64(512), self._u64(576)
        out = []
        while i < head:
            n_bytes, kind, level, _ = struct.unpack_from("<IHHQ", self.bytes, at + (i & (n - 1)))
            start = at + (i & (n - 1)) + 16
            if kind != 0:
                out.append(Text(kind, level, self.bytes[start:start + n_bytes].decode()))
            i += 16 + (n_bytes + 7) // 8 * 8
        return out

    # what a test asks ------------------------------------------------------------------

    def kind(self, *kinds):
        return [e for e in self.events if e.kind in kinds]

    def steps_ended(self):
        return [e.step for e in self.kind(STEP_END)]

    def phases(self, phase, kind=PHASE_BEGIN):
        """(step, micro-batch) of each."""
        return [(e.step, e.low) for e in self.kind(kind) if e.flags == phase]

    def collectives(self, *ops):
        return [Coll(e.flags >> 8, e.flags & 0xFF, e.name, e.low, e.b & ~SYNC,
                     bool(e.b & SYNC), e.step)
                for e in self.kind(COLL_BEGIN) if not ops or e.flags >> 8 in ops]

    def buckets(self, kind):
        """(step, micro-batch, bucket) of each."""
        return [(e.step, e.flags & 0xFFF, e.low) for e in self.kind(kind)]

    def records(self, category):
        out = []
        for t in self.texts:
            if t.kind == 3:
                r = json.loads(t.text)
                if r["c"] == category:
                    out.append(r["f"])
        return out

    def logs(self, kind=1):
        return [t for t in self.texts if t.kind == kind]


def read_all(directory):
    """The shared files of a job by rank."""
    files = [RingFile(os.path.join(directory, n)) for n in sorted(os.listdir(directory))
             if n.endswith(".ring")]
    return {f.rank: f for f in files}
