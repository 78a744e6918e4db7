"""A plain DDP training whose facts are known: it writes its own counts and its loss curve as
JSON, so that a test has a truth that did not pass through syncline.

    spine_train.py OUT_DIR STEPS [slow=RANK:FROM:MS] [die=RANK:STEP] [pace=MS]
"""
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

LAYERS = 6
WIDTH = 320
BATCH = 32


def burn(ms):
    """Real work on this rank alone, for ms of its own CPU time."""
    end = time.thread_time() + ms / 1000
    a = torch.ones(64, 64)
    while time.thread_time() < end:
        a = (a @ a).clamp(max=1)


def main():
    out, steps = sys.argv[1], int(sys.argv[2])
    options = dict(a.split("=") for a in sys.argv[3:])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    slow = [int(v) for v in options.get("slow", "-1:0:0").split(":")]
    die = [int(v) for v in options.get("die", "-1:0").split(":")]

    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 10))
    model = DistributedDataParallel(net, bucket_cap_mb=0.2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(
        torch.randn(steps * BATCH, WIDTH, generator=torch.Generator().manual_seed(rank)),
        torch.randint(0, 10, (steps * BATCH,), generator=torch.Generator().manual_seed(99 + rank)))
    losses, marks, brackets = [], [], []
    for step, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=BATCH)):
        if rank == slow[0] and step >= slow[1]:
            burn(slow[2])
        if "pace" in options:
            time.sleep(int(options["pace"]) / 1000)
        if rank == die[0] and step == die[1]:
            with open(f"{out}/died.json", "w") as f:
                json.dump({"at_unix_ns": time.time_ns(), "step": step}, f)
            os.kill(os.getpid(), signal.SIGKILL)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        dist.all_reduce(mean)
        brackets.append((before, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)))
        losses.append(float(mean / world).hex())
        marks.append(time.time_ns())
    dist.barrier()
    layout = model._get_ddp_logging_data()
    with open(f"{out}/rank{rank}.json", "w") as f:
        json.dump({"steps": steps, "losses": losses, "marks_unix_ns": marks,
                   "reduce_raw_ns": brackets,
                   "buckets": len(str(layout["rebuilt_bucket_sizes"]).split(",")),
                   "first_buckets": len(str(layout["bucket_sizes"]).split(",")),
                   "parameter_bytes": sum(p.numel() * 4 for p in net.parameters())}, f)


if __name__ == "__main__":
    main()
