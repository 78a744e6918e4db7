"""A plain DDP loop: 6 steps, then 3 steps of 3 micro-batches, then an evaluation, then 2 steps."""
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
dist._DEFAULT_FIRST_BUCKET_BYTES = 1024  # two buckets of this small net
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
ddp = DDP(net, bucket_cap_mb=0.002)
opt = torch.optim.AdamW(ddp.parameters(), 1e-2)
torch.manual_seed(1 + rank)


def batches(n):
    return DataLoader(TensorDataset(torch.randn(4 * n, 16), torch.randn(4 * n, 1)), batch_size=4)


def train(n):
    for x, y in batches(n):
        opt.zero_grad()
        loss = nn.functional.mse_loss(ddp(x), y)
        loss.backward()
        opt.step()
        print("loss", loss.item().hex())


train(6)
for i, (x, y) in enumerate(batches(9)):
    if i % 3 == 2:
        nn.functional.mse_loss(ddp(x), y).backward()
        opt.step()
        opt.zero_grad()
    else:
        with ddp.no_sync():
            nn.functional.mse_loss(ddp(x), y).backward()
ddp.eval()
with torch.no_grad():
    for x, y in batches(4):
        print("eval", nn.functional.mse_loss(ddp(x), y).item().hex())
ddp.train()
train(2)
logging.getLogger("train").warning("%d of %s", 1, "three")
for p in net.parameters():
    print("parameter", p.double().abs().sum().item().hex())
