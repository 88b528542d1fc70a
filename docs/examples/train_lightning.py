"""A script for Lightning with a fault: the biases of a layer are so high that its sigmoid is saturated.

The lines that end in `# +` were added to it.
"""

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evaluator.hooks.lightning import callback  # +

torch.manual_seed(0)


class Regression(LightningModule):
    """Learns a sum."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.Sigmoid(), nn.Linear(32, 1))
        nn.init.constant_(self.net[0].bias, 50.0)

    def training_step(self, batch, number):  # noqa: ARG002 - what Lightning gives
        """The loss."""
        inputs, targets = batch
        return nn.functional.mse_loss(self.net(inputs), targets)

    def configure_optimizers(self):
        """The optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


inputs = torch.randn(640, 8)
batches = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=32)
Trainer(
    max_epochs=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    callbacks=[callback("trial", every=10)],  # +
).fit(Regression(), batches)
