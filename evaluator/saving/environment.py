"""The environment variables by which launchers tell a process which of several workers it is.

Source:
    torchrun's documentation, "Environment Variables"; the same names are set by accelerate, Lightning and MPI wrappers.
"""

from __future__ import annotations

import os

RANK = "RANK"
WORLD_SIZE = "WORLD_SIZE"


def rank_and_size() -> tuple[int, int]:
    """The number of this worker and how many there are; 0 of 1 where the variables are not set, or make no sense."""
    try:
        rank, size = int(os.environ.get(RANK, "0")), int(os.environ.get(WORLD_SIZE, "1"))
    except ValueError:
        return 0, 1
    return (rank, size) if 0 <= rank < size else (0, 1)
