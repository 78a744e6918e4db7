"""A loop without an optimizer, with an evaluation in the middle and a forward that fails."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for i, x in enumerate(DataLoader(torch.randn(14, 4), batch_size=2)):
    loss = net(x).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    if i == 3:
        net.eval()
        net(torch.randn(2, 4))
        net.train()
        try:
            net[0](torch.randn(2, 5))
        except RuntimeError:
            print("failed as it should")
    print(loss.item().hex())
