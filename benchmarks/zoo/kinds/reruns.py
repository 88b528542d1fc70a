"""Runs that are compared with a second run of the same program, and runs that stand still for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import learns
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.programs import ADAM, between, classifier, middle
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Network, train

WEIGHT = "MLP_block0.fc.weight"


def _stalls(random: Random) -> Run:
    """In the middle nothing happens for one to three hours, then the run goes on."""
    program = classifier(random, replace(ADAM, blocks=(1, 2)))
    begins = program.begins = middle(random, program.steps) // program.save_every * program.save_every
    lost = between(random, (3600, 10800))
    program.waits = lambda step: lost if step == begins else 0.0
    run = train(program, random)
    # the last step before nothing is saved any more
    run.begins = max(step for step in run.steps if step < (run.begins or 0))
    return run


def _twice(differs: bool) -> Callable[[Random], Run]:
    """The same program run twice; the second time, if it differs, something in the middle is not reproducible."""

    def record(random: Random) -> Run:
        seed = int(random.integers(2**62))
        first, second = np.random.default_rng(seed), np.random.default_rng(seed)
        run = train(classifier(first, ADAM), first)
        program = classifier(second, ADAM)
        begins = middle(random, program.steps)

        def add(network: Network, step: int, _: int) -> None:
            if differs and step == begins:
                network.put(WEIGHT, network.parameters()[WEIGHT] * np.float32(1.02))

        program.tamper, program.begins = add, begins
        run.other = train(program, second)
        run.begins = run.other.begins if differs else None
        return run

    return record


def _proof_stalls(run: Run) -> None:
    gaps = np.diff([saved.seconds for saved in run.saved])
    assert gaps.max() > 3500
    assert np.sort(gaps)[-2] < 120


def _proof_twice(run: Run) -> None:
    assert run.other is not None
    pairs = zip(run.saved, run.other.saved, strict=True)
    differ = [a.step for a, b in pairs if not np.array_equal(a.values[WEIGHT], b.values[WEIGHT])]
    assert (not differ) if run.begins is None else differ[0] >= run.begins


def _proof_same(run: Run) -> None:
    learns(accuracy=0.85)(run)
    _proof_twice(run)


KINDS = (
    Kind("reproduced", "compared with a second run of the same seed", _twice(differs=False), _proof_same, variant=True),
    Kind("stalled", "nothing for one to three hours", _stalls, _proof_stalls, Fault(("StalledTrainingRule",), ())),
    Kind(
        "not-reproducible",
        "compared with a second run of the same seed that goes another way",
        _twice(differs=True),
        _proof_twice,
        Fault(("SimilarAcrossRuns",), ()),
    ),
)
