"""Reads exported traces as a viewer does: Perfetto packets off the wire, without its definitions, and Chrome JSON.

Both end in one form, and both are held against what an importer needs while they are read: tracks are told before they
are used, slices nest, every begin has its end, every arrow both of its own."""
import json
import struct


class Broken(AssertionError):
    pass


def need(fine, *what):
    if not fine:
        raise Broken(*what)


class Slice:
    def __init__(self, track, begin, name, cat, args, parent):
        self.track, self.begin, self.end, self.name, self.cat, self.args, self.parent = track, begin, None, name, cat, args, parent
        self.children = []

    def __repr__(self):
        return f"{self.name} [{self.begin}, {self.end}] {self.args}"


class Trace:
    """tracks: id -> (name, parent, pid); process: pid -> name; slices, instants: Slice; readings: (track, at, value);
    arrows: (from Slice, to Slice, at_from, at_to)."""

    def __init__(self):
        self.tracks, self.processes = {}, {}
        self.slices, self.instants, self.readings, self.arrows = [], [], [], []
        self.other = {}

    def place(self, s):
        """(process name, track name)"""
        name, pid = self.tracks[s.track]
        return self.processes.get(pid), name

    def named(self, cat):
        return [s for s in self.slices + self.instants if s.cat == cat]


def replay(t, events):
    """events: (at, kind, track, name, cat, args, out, in); kinds B, E, I, C. As an importer: by time, then by their order."""
    stacks, left = {}, {}
    for at, kind, track, name, cat, args, out, into in sorted(events, key=lambda e: e[0]):
        need(at >= 0, "a time before all times", at)
        need(track in t.tracks, "a track that was not told", track)
        stack = stacks.setdefault(track, [])
        if kind == "C":
            t.readings.append((track, at, args))
            continue
        if kind == "E":
            need(stack, "an end without a begin", t.tracks[track], at)
            s = stack.pop()
            s.end = at
            s.args.update(args)
            need(s.begin <= s.end, "ends before it begins", s)
            continue
        if kind in "BI":
            s = Slice(track, at, name, cat, args, stack[-1] if stack else None)
            if s.parent:
                s.parent.children.append(s)
            if kind == "B":
                stack.append(s)
                t.slices.append(s)
            else:
                s.end = at
                t.instants.append(s)
        else:  # a Chrome arrow: at the slice that has begun, or the instant that was told
            s = stack[-1] if stack else None
            need(s, "an arrow at no slice", at)
        for flow in out:
            need(flow not in left, "two begins of an arrow", flow)
            left[flow] = (s, at)
        for flow in into:
            need(flow in left and left[flow], "an arrow that arrives before it leaves, or twice", flow)
            t.arrows.append((left[flow][0], s, left[flow][1], at))
            left[flow] = None
    need(not any(left.values()), "arrows that never arrive")
    for track, stack in stacks.items():
        need(not stack, "begins without an end", t.tracks[track], stack)
    return t


# ---- Perfetto ----

def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 0x7f) << shift
        shift += 7
        i += 1
        if b[i - 1] < 0x80:
            return v, i


def fields(b):
    """number -> [value]: numbers as they are, eight bytes and texts as bytes."""
    out, i = {}, 0
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0:
            v, i = varint(b, i)
        elif key & 7 == 1:
            v, i = b[i:i + 8], i + 8
        elif key & 7 == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
            need(len(v) == n, "cut short")
        else:
            raise Broken("a wire type that is not used", key & 7)
        out.setdefault(key >> 3, []).append(v)
    return out


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def annotation(a, names):
    name = names[a[1][0]] if 1 in a else a[10][0].decode()
    values = [(signed(v[0]) if k == 4 else bool(v[0]) if k == 2 else struct.unpack("<d", v[0])[0] if k == 5 else v[0].decode())
              for k, v in a.items() if k in (2, 4, 5, 6)]
    need(len(values) == 1, "an argument with several values, or none", a)
    return name, values[0]


def read_perfetto(data):
    t, events = Trace(), []
    interned = {1: {}, 2: {}, 3: {}}  # categories, names, names of arguments
    i, first = 0, True
    while i < len(data):
        key, i = varint(data, i)
        need(key == 10, "not a packet", key)
        n, i = varint(data, i)
        p = fields(data[i:i + n])
        i += n
        need(p.get(10, [0])[0] != 0, "a packet of no sequence")
        need((p.get(13, [0])[0] & 1 == 1) == first and (87 in p) == first, "the state is cleared by the first packet")
        first = False
        for entry in (fields(p[12][0]) if 12 in p else {}).items():
            for e in map(fields, entry[1]):
                need(e[1][0] > 0 and e[1][0] not in interned[entry[0]], "a number told twice")
                interned[entry[0]][e[1][0]] = e[2][0].decode()
        if 60 in p:
            d = fields(p[60][0])
            uuid, parent = d[1][0], d.get(5, [0])[0]
            need(uuid != 0 and uuid not in t.tracks, "a track told twice", uuid)
            need(parent == 0 or parent in t.tracks, "a parent that was not told", parent)
            pid = t.tracks[parent][1] if parent else None
            if 3 in d:
                process = fields(d[3][0])
                pid = process[1][0]
                need(pid not in t.processes and pid > 0, "a process told twice", pid)
                t.processes[pid] = process[6][0].decode()
            elif not parent:
                pid = -1
                t.processes[pid] = d[2][0].decode()
            t.tracks[uuid] = (d[2][0].decode(), pid)
        if 11 in p:
            e = fields(p[11][0])
            track = e[11][0]
            need(track in t.tracks, "an event before its track", track)
            if 3 in e or 10 in e or 4 in e:
                need(p[13][0] & 2, "numbered names without the flag that says so")
            name = interned[2][e[10][0]] if 10 in e else e[23][0].decode() if 23 in e else None
            cat = interned[1][e[3][0]] if 3 in e else None
            args = dict(annotation(fields(a), interned[3]) for a in e.get(4, []))
            kind = {1: "B", 2: "E", 3: "I", 4: "C"}[e[9][0]]
            if kind == "C":
                args = struct.unpack("<d", e[44][0])[0]
            events.append((p[8][0], kind, track, name, cat, args, [struct.unpack("<Q", f)[0] for f in e.get(47, [])],
                           [struct.unpack("<Q", f)[0] for f in e.get(48, [])]))
    return replay(t, events)


# ---- Chrome JSON ----

def read_chrome(text):
    v, t, events = json.loads(text, parse_float=str), Trace(), []
    base = v["baseTimeNanoseconds"]
    need(v["displayTimeUnit"] == "ns")
    for e in v["traceEvents"]:
        track = e["tid"]
        if e["ph"] == "M":
            if e["name"] == "process_name":
                need(e["pid"] not in t.processes, "a process told twice")
                t.processes[e["pid"]] = e["args"]["name"]
            elif e["name"] == "thread_name":
                need(track not in t.tracks, "a track told twice")
                t.tracks[track] = (e["args"]["name"], e["pid"])
            continue
        us, _, ns = str(e["ts"]).partition(".")
        need(len(ns) == 3, "a time without its nanoseconds", e)
        at = base + int(us) * 1000 + int(ns)
        if e["ph"] == "C":
            t.tracks.setdefault(track, (e["name"], e["pid"]))
            events.append((at, "C", track, None, None, float(e["args"]["value"]), [], []))
            continue
        need(t.tracks[track][1] == e["pid"], "a thread of another process")
        args = {k: float(x) if isinstance(x, str) and k in ("excess_ratio", "coverage", "cost_ratio") else x for k, x in e.get("args", {}).items()}
        if e["ph"] in "sf":
            need((e["ph"] == "f") == (e.get("bp") == "e"), "an arrow's end that binds to the next slice", e)
            flow = int(e["id"], 16)
            events.append((at, "F", track, None, None, {}, [flow] if e["ph"] == "s" else [], [flow] if e["ph"] == "f" else []))
            continue
        need(e["ph"] in "BEi", "an event that is not written", e)
        need(e["ph"] != "i" or e["s"] == "t")
        events.append((at, e["ph"].upper(), track, e.get("name"), e.get("cat"), args, [], []))
    t.other = v["otherData"]
    return replay(t, events)
