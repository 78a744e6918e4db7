#!/usr/bin/env python3
"""make_run.py FILE: a catalogue of 300 steps of 4 ranks in which rank 2 is slow from step 120 on.

What the page's test looks at, served by the real collector. The numbers follow from one small
model of a step (forward, backward, all-reduce, optimizer), so that every table agrees.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import catalogue  # noqa: E402

RANKS, STEPS, SLOW, ONSET = 4, 300, 2, 120
MS = catalogue.MS
STEP_NS = 120 * MS
ERR_NS = 3100
BUCKET_BYTES = [4_400_128, 8_912_896, 1_180_672]
TRANSFER_NS = 3 * MS


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def put_step(db, step, rnd):
    begin = catalogue.START_NS + step * STEP_NS
    work = []
    for rank in range(RANKS):
        slow = 1.6 if rank == SLOW and step >= ONSET else 1.0
        work.append({"input_wait_ns": int(2.2 * MS * rnd.uniform(0.99, 1.01)),
                     "fwd_ns": int(24 * MS * slow * rnd.uniform(0.99, 1.01)),
                     "bwd_ns": int(41 * MS * slow * rnd.uniform(0.99, 1.01)),
                     "opt_ns": int(4 * MS * rnd.uniform(0.99, 1.01))})
    self_ns = [sum(w.values()) for w in work]
    # The last bucket is ready when the backward is done; all leave it together.
    ready = [w["input_wait_ns"] + w["fwd_ns"] + w["bwd_ns"] for w in work]
    reduced = max(ready) + TRANSFER_NS
    durs = []
    for rank, w in enumerate(work):
        exposed = reduced - ready[rank]
        durs.append(self_ns[rank] + exposed)
        peers = median([s for r, s in enumerate(self_ns) if r != rank])
        catalogue.put(db, "raw_rank_step", step=step, rank=rank, begin_ns=begin, begin_err_ns=ERR_NS,
                      dur_ns=durs[rank], self_ns=self_ns[rank], exposed_comm_ns=exposed,
                      wait_ns=max(ready) - ready[rank], wait_err_ns=2 * ERR_NS, eval_ns=0,
                      excess_ratio=self_ns[rank] / peers - 1, n_peers=RANKS - 1, coverage=1.0, **w)
    catalogue.put(db, "raw_step", step=step, begin_ns=begin, dur_ns=max(durs), dur_err_ns=ERR_NS, n_ranks=RANKS,
                  slowest_rank=SLOW if step >= ONSET else None, complete=1)
    for b, n_bytes in enumerate(BUCKET_BYTES):
        share = (b + 1) / len(BUCKET_BYTES)
        enter = [w["input_wait_ns"] + w["fwd_ns"] + int(w["bwd_ns"] * share) for w in work]
        first, last = min(enter), max(enter)
        second = sorted(enter)[-2]
        decided = last - second > 2 * ERR_NS
        catalogue.put(db, "raw_collective", group_id=1, seq=step * len(BUCKET_BYTES) + b, op=1, dtype=1, bytes=n_bytes,
                      step=step, first_arrival_ns=begin + first, last_arrival_ns=begin + last,
                      end_ns=begin + last + TRANSFER_NS, skew_ns=last - first, skew_err_ns=2 * ERR_NS,
                      last_rank=enter.index(last) if decided else None, decided=int(decided), mismatch=0,
                      n_expected=RANKS, n_seen=RANKS,
                      arrivals=json.dumps([[r, e - first, last + TRANSFER_NS - first, ERR_NS] for r, e in enumerate(enter)]))
        for rank, e in enumerate(enter):
            catalogue.put(db, "raw_bucket", step=step, rank=rank, ddp=0, micro=0, bucket=b, bytes=n_bytes,
                          seq=step * len(BUCKET_BYTES) + b, ready_ns=begin + e - MS // 5, submitted_ns=begin + e,
                          started_ns=begin + last, reduced_ns=begin + last + TRANSFER_NS,
                          applied_ns=begin + last + TRANSFER_NS + 2 * MS, err_ns=ERR_NS)


def main(path):
    rnd = random.Random(4)
    db = catalogue.create(path, world=RANKS, seen=RANKS, steps=0)
    for step in range(STEPS):
        put_step(db, step, rnd)
    db.execute("update raw_run set ended_ns = started_ns + ?", (STEPS * STEP_NS,))
    onset_ns = catalogue.START_NS + ONSET * STEP_NS
    catalogue.put(db, "raw_verdict", key=f"slow.fixed_rank/{SLOW}/{ONSET}", **{"class": "slow.fixed_rank"}, severity="slow",
                  confidence="certain", error_kind="hard",
                  culprit=json.dumps({"ranks": [SLOW], "host": "hosta", "detail": "forward"}),
                  sentence=f"Rank {SLOW} is slow: its own work takes 55 % longer than its peers' since step {ONSET}; "
                           "the others wait 39 ms for it in each step.",
                  evidence=json.dumps([{"view": "rank_step", "step": ONSET, "rank": SLOW}]),
                  rules_out=json.dumps(["slow.global: the other ranks kept their pace"]),
                  coverage=json.dumps({"ranks_silent": 0, "events_lost": 0}), first_step=ONSET, last_step=STEPS - 1,
                  onset_ns=onset_ns, detected_ns=onset_ns + 20 * STEP_NS, cost_ratio=0.52, margin_ns=39 * MS, error_ns=2100)
    db.commit()
    db.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_run.py FILE")
    main(sys.argv[1])
