"""A plain PyTorch script with a fault: the biases of a layer are so low that none of its units is ever active.

The lines that end in `# +` were added to it.
"""

import torch
from torch import nn

from evaluator.hooks.torch import Hook  # +

torch.manual_seed(0)
inputs = torch.randn(512, 8)
targets = (inputs.sum(1) > 0).long()

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
nn.init.constant_(model[2].bias, -100.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hook = Hook(model, "trial", every=10)  # +

for _ in range(300):
    batch = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(inputs[batch]), targets[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hook.step(loss=loss)  # +
