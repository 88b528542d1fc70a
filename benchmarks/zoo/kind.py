"""A kind of run: the training program that makes it from a seed, and what is known about what it makes."""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.zoo import kinds as families
from benchmarks.zoo.run import Run

HEALTHY_SEEDS, VARIANT_SEEDS, FAULTY_SEEDS = 25, 10, 3


@dataclass(frozen=True)
class Fault:
    """What was planted, and what a good set of rules says about it."""

    rules: tuple[str, ...]
    """The rules that are for this fault: one of them has to fire."""
    acceptable: tuple[str, ...] = ()
    """Rules whose condition is a consequence of the same fault."""
    tensor: str = ""
    """Pattern of the tensors at which the fault is; empty when it is not about a tensor."""
    worker: str = ""
    """Name of the worker at which the fault is; empty when it is not about a worker."""
    note: str = ""
    """Why it may not be told from a healthy run by its numbers."""


@dataclass(frozen=True)
class Kind:
    """One kind of run."""

    name: str
    about: str
    """The kind in one line, for the table."""
    record: Callable[[np.random.Generator], Run]
    """Trains, everything random from the generator."""
    proof: Callable[[Run], None]
    """Asserts on the saved arrays, without any rule, that the run is what it is said to be."""
    fault: Fault | None = None
    """None: a healthy run, in which every finding is a false alarm."""
    variant: bool = False
    """Whether it is close to another kind, so that fewer seeds of it say enough."""

    @property
    def seeds(self) -> int:
        """How many runs of it the zoo makes."""
        if self.fault is not None:
            return FAULTY_SEEDS
        return VARIANT_SEEDS if self.variant else HEALTHY_SEEDS

    def run(self, seed: int) -> Run:
        """The run of this seed."""
        return self.record(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))


def all_kinds() -> list[Kind]:
    """Every kind of every family, healthy ones first.

    Raises:
        TypeError: a family has no KINDS, or two kinds have the same name.
    """
    found: dict[str, Kind] = {}
    for info in pkgutil.iter_modules(families.__path__, families.__name__ + "."):
        module = importlib.import_module(info.name)
        declared = getattr(module, "KINDS", None)
        if not isinstance(declared, tuple):
            raise TypeError(f"{module.__file__}: no KINDS; a family assigns a tuple of Kind to it")
        for kind in declared:
            if kind.name in found:
                raise TypeError(f"{module.__file__}: kind {kind.name!r} is there twice; names are unique")
            found[kind.name] = kind
    return sorted(found.values(), key=lambda kind: kind.fault is not None)
