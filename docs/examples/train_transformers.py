"""A script for the Trainer of Hugging Face with a fault: the biases of a layer are so low that it is dead.

The lines that end in `# +` were added to it.
"""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from evaluator.hooks.transformers import callback  # +

torch.manual_seed(0)


class Classifier(nn.Module):
    """Says which of two kinds a text is of."""

    def __init__(self):
        super().__init__()
        self.embed, self.fc, self.relu, self.out = nn.Embedding(50, 16), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)
        nn.init.constant_(self.fc.bias, -100.0)

    def forward(self, input_ids, labels):
        """Loss and scores."""
        logits = self.out(self.relu(self.fc(self.embed(input_ids).mean(1))))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


texts = torch.randint(0, 50, (640, 12))
data = [{"input_ids": text, "labels": int(text[0] > 24)} for text in texts]
arguments = TrainingArguments(
    "output", num_train_epochs=2, per_device_train_batch_size=32, report_to=[], save_strategy="no", logging_steps=10
)
Trainer(
    Classifier(),
    arguments,
    train_dataset=data,
    callbacks=[callback("trial", every=10)],  # +
).train()
