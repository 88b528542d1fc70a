"""A plain Keras script with a fault: the learning rate is so large that the training explodes.

The lines that end in `# +` were added to it.
"""

import keras
import numpy as np

from evaluator.hooks.keras import callback  # +

keras.utils.set_random_seed(0)
inputs = np.random.default_rng(0).normal(size=(2000, 8))
targets = inputs[:, :1]

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(10.0), "mse")
model.fit(
    inputs,
    targets,
    epochs=3,
    verbose=0,
    validation_split=0.1,
    callbacks=[callback("trial", every=10)],  # +
)
