"""A plain XGBoost script with a fault: deep trees without any restraint learn labels by heart that are mostly chance.

The lines that end in `# +` were added to it.
"""

import numpy as np
import xgboost

from evaluator.hooks.xgboost import callback  # +

dice = np.random.default_rng(0)
features = dice.normal(size=(4000, 6))
labels = (features[:, 0] + 4 * dice.normal(size=4000) > 0).astype(int)
train = xgboost.DMatrix(features[:3000], labels[:3000])
validation = xgboost.DMatrix(features[3000:], labels[3000:])

xgboost.train(
    {"objective": "binary:logistic", "max_depth": 16, "min_child_weight": 0, "eta": 1.0},
    train,
    num_boost_round=40,
    evals=[(train, "train"), (validation, "validation")],
    verbose_eval=False,
    callbacks=[callback("trial", data=train)],  # +
)
