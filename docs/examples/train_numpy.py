"""A training without any framework, with a fault: the learning rate is so large that the loss grows.

The lines that end in `# +` were added to it.
"""

import numpy as np

from evaluator.safe_writer import SafeWriter  # +

dice = np.random.default_rng(0)
inputs = dice.normal(size=(512, 8))
targets = inputs @ dice.normal(size=8)
weights = np.zeros(8)
writer = SafeWriter("trial", collections={"losses": ["loss"], "weights": ["w"], "gradients": ["gradient/w"]})  # +

for step in range(200):
    error = inputs @ weights - targets
    gradient = 2 * inputs.T @ error / len(inputs)
    weights -= 1.1 * gradient
    writer.save(step, {"loss": np.mean(error**2), "w": weights, "gradient/w": gradient})  # +
