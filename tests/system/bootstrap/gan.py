"""Two optimizers take turns (one calls its parent's step() twice), then another goes on alone."""
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Twice(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        return super().step(closure)


g, d = nn.Linear(4, 8), nn.Linear(8, 1)
opt_d = Twice(d.parameters(), 0.01)
opt_g = torch.optim.Adam(g.parameters(), 0.01)
for _ in range(5):
    for opt in (opt_d, opt_g):
        opt.zero_grad()
        loss = d(g(torch.randn(4, 4))).pow(2).mean()
        loss.backward()
        opt.step()
        print(loss.item().hex())
opt = torch.optim.SGD(d.parameters(), 0.01)
for _ in range(6):
    opt.zero_grad()
    d(torch.ones(4, 8)).pow(2).mean().backward()
    opt.step()
