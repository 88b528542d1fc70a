"""What rules about updates of weights share: by how much a value moved, and how large it was before."""

from __future__ import annotations

import numpy as np

from evaluator.rule import Measure
from evaluator.segments import Array, Floats, Segments


def change_and_size(segments: Segments, before: Segments) -> Floats:
    """(tensors, 2): mean |W - W before| and mean |W before|, accumulated in double precision.

    Means of magnitudes do not depend on the size of the tensor, and few large elements weigh less than in norms.
    """
    now, then = _wide(segments.flat), _wide(before.flat)
    return np.stack([segments.mean(np.abs(now - then)), segments.mean(np.abs(then))], axis=1)


def _wide(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype == np.float16 else values


UPDATE = Measure(change_and_size, width=2, kinds="fc")
"""One measure, so that a weight is compared with its last value once for all rules."""
