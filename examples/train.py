"""A small training loop that makes the GPU wait: data prepared on the spot, and each loss read back at once.

python examples/train.py [EPOCHS] [WORKERS]
ridgepole why examples/train.py
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ridgepole


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 784), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    model = nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        total = 0.0
        for images, labels in loader:
            with ridgepole.step():
                loss = F.cross_entropy(model(images.to(device)), labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()  # the CPU waits for the GPU here, every step
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
