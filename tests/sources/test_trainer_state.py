"""The state file of Hugging Face's Trainer: which one counts, what of it, and how it is followed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np
import pytest

from evaluator.sources import detect
from evaluator.sources.trainer_state import TrainerState
from evaluator.storage._one_file import OneFile
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sources.contract import opened
from tests.sources.log_reading import everything, problems

STATE = "trainer_state.json"


def row(step: int, **values: object) -> dict[str, object]:
    return {"epoch": step / 100, **values, "step": step}


def state(*rows: Mapping[str, object]) -> bytes:
    return json.dumps({"best_metric": None, "global_step": 1, "log_history": list(rows), "max_steps": 100}).encode()


TRAINING = [
    row(10, loss=2.0, grad_norm=1.5, learning_rate=1e-4),
    row(
        10, eval_loss=2.2, eval_accuracy=0.4, eval_runtime=3.1, eval_samples_per_second=10.0, eval_steps_per_second=2.0
    ),
    row(20, loss=1.0, grad_norm=math.nan, learning_rate=0.0),
]
SUMMARY = row(20, total_flos=1e15, train_loss=1.5, train_runtime=100.0, train_samples_per_second=5.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> MemoryStore:
    return MemoryStore(clock=clock)


def test_losses_metrics_norms_and_rates_are_read_and_speeds_are_not(store: MemoryStore):
    store.write(STATE, state(*TRAINING))
    source = detect(store)

    assert isinstance(source, TrainerState)
    np.testing.assert_equal(
        everything(source),
        {
            ("loss", "TRAIN"): {10: 2.0, 20: 1.0},
            ("grad_norm", "TRAIN"): {10: 1.5, 20: math.nan},
            ("learning_rate", "TRAIN"): {10: 1e-4, 20: 0.0},
            ("eval_loss", "EVAL"): {10: 2.2},
            ("eval_accuracy", "EVAL"): {10: 0.4},
        },
    )


def test_the_summary_at_the_end_is_the_end_and_no_measurement(store: MemoryStore):
    store.write(STATE, state(*TRAINING))
    source = TrainerState(store)
    source.sightings()
    before = source.ended()
    store.write(STATE, state(*TRAINING, SUMMARY))

    assert ("train_loss", "TRAIN") not in everything(source)
    assert (before, source.ended()) == (False, True)


def test_the_newest_checkpoint_counts(store: MemoryStore, clock: FakeClock):
    store.write(f"checkpoint-100/{STATE}", state(row(100, loss=9.0)))
    clock.advance(1000)
    store.write(f"checkpoint-20/{STATE}", state(*TRAINING))
    store.write("checkpoint-20/model.bin", b"")
    store.write("checkpoint-final/other", b"")

    assert list(everything(TrainerState(store))["loss", "TRAIN"]) == [10, 20]


def test_of_files_that_were_copied_together_the_furthest_counts(store: MemoryStore):
    for step in (20, 100, 3):
        store.write(f"checkpoint-{step}/{STATE}", state(row(step, loss=1.0)))
    source = TrainerState(store)
    first = list(everything(source)["loss", "TRAIN"])
    store.write(STATE, state(row(200, loss=1.0)))

    assert (first, list(everything(source)["loss", "TRAIN"])) == ([100], [200])


@pytest.mark.parametrize("name", [STATE, "run_7.json"])
def test_the_file_itself_can_be_given(store: MemoryStore, name: str):
    store.write(f"out/{name}", state(*TRAINING))
    source = detect(OneFile(f"out/{name}", store, f"out/{name}"))

    assert isinstance(source, TrainerState)
    assert everything(source)["loss", "TRAIN"] == {10: 2.0, 20: 1.0}


def test_a_file_that_was_rewritten_longer_leaves_what_was_taken(store: MemoryStore, clock: FakeClock):
    store.write(f"checkpoint-10/{STATE}", state(*TRAINING[:2]))
    source = TrainerState(store)
    opened(source)
    before = source.sightings()
    clock.advance(600)
    store.write(f"checkpoint-20/{STATE}", state(*TRAINING))
    after = source.sightings()

    assert (after[:1] == before, [one.step for one in after]) == (True, [10, 20])


def test_another_history_is_a_restart(store: MemoryStore, clock: FakeClock):
    store.write(STATE, state(row(10, loss=2.0), row(20, loss=1.0)))
    source = TrainerState(store)
    opened(source)
    before = source.sightings()
    clock.advance(600)
    store.write(STATE, state(row(10, loss=3.0)))
    after = source.sightings()

    assert ([one.step for one in after], after[0] == before[0]) == ([10], False)


def test_a_file_that_is_just_being_written_takes_nothing_back(store: MemoryStore):
    whole = state(*TRAINING)
    store.write(STATE, whole)
    source = TrainerState(store)
    before = source.sightings()
    for cut in range(0, len(whole) - 1, 7):
        store.write(STATE, whole[:cut])
        assert source.sightings() == before
    assert problems(source) == {STATE: "is not whole JSON; the Trainer may be writing it"}
    store.write(STATE, whole)
    source.sightings()

    assert problems(source) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"log_history": 3}', b"\xff", b"[" * 100_000])
def test_what_is_no_state_is_named(store: MemoryStore, content: bytes):
    store.write(STATE, content)
    source = TrainerState(store)

    assert source.sightings() == []
    assert list(problems(source)) == [STATE]


def test_entries_that_cannot_be_read_are_named_and_the_rest_is_used(store: MemoryStore):
    store.write(STATE, json.dumps({"log_history": [7, {"loss": 1.0}, *TRAINING]}).encode())
    source = TrainerState(store)

    assert everything(source)["loss", "TRAIN"] == {10: 2.0, 20: 1.0}
    assert problems(source)[STATE].startswith("2 rows not used: entry 1 is no object; entry 2 has no step")
