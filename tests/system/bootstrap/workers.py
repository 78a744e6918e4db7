"""Data-loader workers by fork and by spawn."""
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor([i * i, os.getpid()])


def main():
    for method in ("fork", "spawn"):
        pids = set()
        loader = DataLoader(Squares(), batch_size=2, num_workers=2,
                            multiprocessing_context=method)
        for batch in loader:
            pids.update(batch[:, 1].tolist())
        print(method, len(pids), os.getpid() in pids)


if __name__ == "__main__":
    main()
