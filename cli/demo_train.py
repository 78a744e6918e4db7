"""The training of `syncline demo`: a small convolutional network, DDP over gloo.

It knows nothing of syncline. One rank can be made slow on purpose: from a step
on its forward pass also computes something nobody needs (`--slow-rank`). The
learning is the same on every machine: seeds are fixed and the data is made
here. How many steps fit into --seconds is rank 0's clock to say; it tells the
others every ten steps.
"""
import argparse
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

N_CLASSES = 10
N_IMAGES = 2048
SIDE = 24
STEPS_A_WORD = 10  # between two "go on" of rank 0
MIN_STEPS = 240


class Shapes(Dataset):
    """Noisy pictures of ten patterns."""

    def __init__(self):
        g = torch.Generator().manual_seed(7)
        patterns = torch.randn(N_CLASSES, 3, SIDE, SIDE, generator=g)
        self.labels = torch.arange(N_IMAGES) % N_CLASSES
        self.images = patterns[self.labels] + 4.0 * torch.randn(N_IMAGES, 3, SIDE, SIDE, generator=g)

    def __len__(self):
        return N_IMAGES

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.conv3 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.hidden = nn.Linear(2 * width * (SIDE // 4) ** 2, 160)
        self.out = nn.Linear(160, N_CLASSES)
        self.burden_ms = 0.0

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.conv1(x)), 2)
        h = F.relu(self.conv2(h))
        h = F.max_pool2d(F.relu(self.conv3(h)), 2)
        if self.burden_ms:
            self.burden(x)
        return self.out(F.relu(self.hidden(h.flatten(1))))

    @torch.no_grad()
    def burden(self, x):
        """Real arithmetic whose result is thrown away."""
        until = time.thread_time() + self.burden_ms / 1e3
        while time.thread_time() < until:
            self.conv1(x)


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=50, help="how long to train")
    p.add_argument("--batch", type=int, default=8, help="pictures a rank and step")
    p.add_argument("--slow-rank", type=int, default=-1, help="this rank does more work …")
    p.add_argument("--slow-from", type=int, default=80, help="… from this step on …")
    p.add_argument("--slow-ms", type=float, default=40, help="… for so many milliseconds a step")
    p.add_argument("--cpu-time", action="store_true", help="say at the end what CPU time a step took")
    p.add_argument("--word-every", type=float, default=5, help="seconds between two lines of rank 0")
    return p.parse_args()


def batches(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    o = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = Shapes()
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=o.batch, sampler=sampler, drop_last=True)
    net = Net()
    model = DistributedDataParallel(net, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    go_on = torch.ones(1)
    begin = said = time.monotonic()
    cpu_begin = time.process_time()
    said_step = 0

    for step, (x, y) in enumerate(batches(loader, sampler)):
        if step % STEPS_A_WORD == 0 and step >= MIN_STEPS:
            go_on[0] = time.monotonic() - begin < o.seconds
            dist.broadcast(go_on, 0)
            if not go_on:
                break
        if rank == o.slow_rank and step >= o.slow_from:
            net.burden_ms = o.slow_ms
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.monotonic()
        if rank == 0 and now - said >= o.word_every:
            print("step %d, loss %.3f, %.0f ms a step" %
                  (step, loss.item(), 1e3 * (now - said) / (step - said_step)), flush=True)
            said, said_step = now, step

    if rank == 0:
        print("trained %d steps in %.1f s" % (step, time.monotonic() - begin), flush=True)
    if o.cpu_time:
        print("CPU %.2f ms a step" % (1e3 * (time.process_time() - cpu_begin) / step), flush=True)
    if rank == o.slow_rank:
        print("from step %d on, this rank computed %g ms more in each forward pass" %
              (o.slow_from, o.slow_ms), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
