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
    change = now - then
    # magnitudes of complex numbers are of another type, others take the room that is there
    real = change.dtype.kind == "f"
    found = np.empty((len(segments), 2))
    found[:, 0] = segments.mean(np.abs(change, out=change) if real else np.abs(change))
    found[:, 1] = segments.mean(np.abs(then, out=change) if real and change.dtype == then.dtype else np.abs(then))
    return found


def _wide(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype == np.float16 else values


UPDATE = Measure(change_and_size, width=2, kinds="fc")
"""One measure, so that a weight is compared with its last value once for all rules."""
