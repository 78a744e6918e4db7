"""Makes a catalogue as a collector leaves it, from the project's own schema, with known content."""
import glob
import json
import os
import sqlite3

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
WORLD = 4
APPLICATION_ID = 0x534C4E31  # "SLN1": what tells a catalogue from any other SQLite file


def sql_text(*parts):
    with open(os.path.join(ROOT, "sql", *parts), encoding="utf-8") as f:
        return f.read()


def create(path, world=WORLD, seen=WORLD, steps=20, lost=0, wal=False, still=0):
    """A healthy run of `steps` steps; returns the open connection."""
    db = sqlite3.connect(path)
    if wal:
        db.execute("pragma journal_mode = wal")
    migrations = sorted(glob.glob(os.path.join(ROOT, "sql", "migrations", "*.sql")))
    for m in migrations:
        db.executescript(sql_text("migrations", os.path.basename(m)))
    db.execute("pragma application_id = %d" % 0x534c4e31)  # collector/store/store.h
    db.execute("pragma user_version = %d" % len(migrations))
    db.execute("pragma application_id = %d" % APPLICATION_ID)
    db.executescript(sql_text("views.sql"))
    db.executescript(sql_text("doc.sql"))
    end = START_NS + steps * 50 * MS
    put(db, "raw_run", run_id="made-up", name="made-up", world_size=world, started_ns=START_NS, ended_ns=end,
        fleet_minus_raw_ns=START_NS, boot_id="b")
    put(db, "raw_host", host_id=1, name="hosta", boot_id="b", time_ns_inode=1, same_clock=1)
    put(db, "raw_host", host_id=2, name="hostb", boot_id="c", time_ns_inode=1, same_clock=0)
    put(db, "raw_clock", host_id=2, at_ns=end, offset_ns=START_NS + 77, error_ns=25_000, rtt_ns=50_000,
        quality="good", soft_ns=400, skew_ppb=-1234.5, status="anchored")
    put(db, "raw_agent", agent=1, agent_id=b"a" * 16, host_id=1, version="0.1.0")
    for rank in range(seen):
        put(db, "raw_process", process_id=rank + 1, host_id=1 + rank % 2, agent=1, unique_id=rank, pid=100 + rank,
            rank=rank, local_rank=rank, world_size=world, restart_count=0, host_started_ns=0,
            state="alive" if rank < still else "left",
            n_dropped=lost if rank == 0 else 0)
        put(db, "raw_chunk", process_id=rank + 1, ring=0, first_index=0, n_events=1000, kinds=0, host_t_min_ns=0,
            host_t_max_ns=1, data=b"")
        put(db, "raw_name", process_id=rank + 1, id=1, text="default")
    put(db, "raw_group", group_id=1, name="default", ranks=json.dumps(list(range(world))), ranks_known=1)
    for step in range(steps):
        begin = START_NS + step * 50 * MS
        put(db, "raw_step", step=step, begin_ns=begin, dur_ns=50 * MS, dur_err_ns=25_000, n_ranks=seen,
            slowest_rank=None, complete=1)
        for rank in range(seen):
            put(db, "raw_rank_step", step=step, rank=rank, begin_ns=begin, begin_err_ns=0, dur_ns=50 * MS,
                self_ns=40 * MS, exposed_comm_ns=8 * MS, wait_ns=2 * MS, wait_err_ns=25_000, input_wait_ns=1 * MS,
                fwd_ns=15 * MS, bwd_ns=20 * MS, opt_ns=3 * MS, eval_ns=0, excess_ratio=0.01 * rank, n_peers=seen - 1,
                coverage=1.0)
        arrivals = [[r, r * MS, 12 * MS, 25_000] for r in range(seen)]
        put(db, "raw_collective", group_id=1, seq=step, op=1, dtype=1, bytes=4096, step=step, first_arrival_ns=begin,
            last_arrival_ns=begin + (seen - 1) * MS, end_ns=begin + 12 * MS, skew_ns=(seen - 1) * MS,
            skew_err_ns=50_000, last_rank=seen - 1, decided=1, mismatch=0, n_expected=world, n_seen=seen,
            arrivals=json.dumps(arrivals))
    db.commit()
    return db


def put(db, table, **columns):
    """One row; columns that must not be null and are not of interest here become 0."""
    for _, name, _, notnull, default, key in db.execute(f"pragma table_info({table})"):
        if notnull and default is None and not key:
            columns.setdefault(name, 0)
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    db.execute(f"insert into {table} ({names}) values ({marks})", list(columns.values()))


def put_verdict(db, key="v1", severity="slow", confidence="certain", cost=0.4, sentence=None, rank=2):
    put(db, "raw_verdict", key=key, **{"class": "slow.fixed_rank"}, severity=severity, confidence=confidence,
        error_kind="soft", culprit=json.dumps({"ranks": [rank], "host": "hosta", "detail": "forward"}),
        sentence=sentence or f"Rank {rank} is slow in forward.",
        evidence=json.dumps([{"view": "rank_step", "step": 7, "rank": rank}]),
        rules_out=json.dumps(["slow.global: the others are as fast as before"]),
        coverage=json.dumps({"ranks_silent": 0, "events_lost": 0}), first_step=7, last_step=19,
        onset_ns=START_NS + 350 * MS, detected_ns=START_NS + 500 * MS, cost_ratio=cost, margin_ns=18 * MS,
        error_ns=400_000)
    db.commit()
