"""A training as people write them: AdamW, gradient accumulation, an evaluation now and then.

It knows nothing of syncline. Writes what it did to OUT/rankN.json.
"""
import contextlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

STEPS = 30
ACCUMULATE = 4
EVAL_EVERY = 10


def main(out):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Dropout(0.1),
                              torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 10))
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    generator = torch.Generator().manual_seed(100 + rank)
    losses, evals = [], []

    for step in range(STEPS):
        model.train()
        total = 0.0
        for micro in range(ACCUMULATE):
            x = torch.randn(32, 64, generator=generator)
            y = (x[:, :10].argmax(1)).long()
            last = micro == ACCUMULATE - 1
            with contextlib.nullcontext() if last else model.no_sync():
                loss = torch.nn.functional.cross_entropy(model(x), y) / ACCUMULATE
                loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total.hex())

        if step % EVAL_EVERY == EVAL_EVERY - 1:
            model.eval()
            with torch.no_grad():
                x = torch.randn(256, 64, generator=generator)
                right = (model(x).argmax(1) == x[:, :10].argmax(1)).float().mean()
            dist.all_reduce(right)
            evals.append((right.item() / world).hex())

    with open(os.path.join(out, f"rank{rank}.json"), "w", encoding="ascii") as f:
        json.dump({"losses": losses, "evals": evals, "steps": STEPS,
                   "parameter_bytes": 4 * sum(p.numel() for p in net.parameters())}, f)
    dist.barrier()
    dist.destroy_process_group()


main(sys.argv[1])
