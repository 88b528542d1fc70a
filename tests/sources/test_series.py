"""A run given in memory: what is done with modes, workers, values of every kind, and what was not saved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evaluator.errors import KeyMissing
from evaluator.formats.collection_file import SavedCollection
from evaluator.modes import Mode
from evaluator.sources import detect, source_types
from evaluator.sources.base import Sighting, Source
from evaluator.sources.series import Point, SeriesRun
from evaluator.storage.memory import MemoryStore
from tests.sources.contract import Collections, SavedFile, SourceContract, opened, values_of


class TestContract(SourceContract):
    def make(self, files: Sequence[SavedFile], collections: Collections | None = None) -> Source:
        points = [
            Point(file.step, name, value, file.mode, file.worker)
            for file in files
            for name, value in file.values.items()
        ]
        return SeriesRun(points, collections=collections)


def run(*points: tuple[int, str, object, Mode]) -> SeriesRun:
    """A run of one worker."""
    return SeriesRun([Point(*point) for point in points])


# modes


def test_values_of_two_modes_at_one_step_are_two_files_of_one_sighting():
    source = run((5, "loss", 1.0, Mode.TRAIN), (5, "val_loss", 2.0, Mode.EVAL))
    (sighting,) = source.sightings()

    assert [(file.step, file.mode, file.layout.names) for file in source.open(sighting)] == [
        (5, Mode.TRAIN, ("loss",)),
        (5, Mode.EVAL, ("val_loss",)),
    ]


def test_one_name_can_be_saved_in_two_modes_at_one_step():
    source = run((0, "loss", 1.0, Mode.TRAIN), (0, "loss", 2.0, Mode.EVAL))

    assert [float(values_of(source, file)["loss"]) for file in opened(source)] == [1.0, 2.0]


def test_mode_steps_count_the_steps_of_a_mode_and_worker():
    points = [
        Point(step, "loss", 0.0, mode, worker)
        for step, mode, worker in [
            (10, Mode.EVAL, "worker_0"),
            (0, Mode.TRAIN, "worker_0"),
            (5, Mode.TRAIN, "worker_0"),
            (20, Mode.EVAL, "worker_0"),
            (20, Mode.TRAIN, "worker_1"),
        ]
    ]
    found = [(file.step, file.worker, file.mode, file.mode_step) for file in opened(SeriesRun(points))]

    assert found == [
        (0, "worker_0", Mode.TRAIN, 0),
        (5, "worker_0", Mode.TRAIN, 1),
        (10, "worker_0", Mode.EVAL, 0),
        (20, "worker_0", Mode.EVAL, 1),
        (20, "worker_1", Mode.TRAIN, 0),
    ]


# workers


def test_workers_have_files_of_their_own_in_natural_order():
    points = [Point(0, "x", number, Mode.GLOBAL, f"worker_{number}") for number in (10, 2, 0)]
    source = SeriesRun(points)

    assert [file.worker for file in opened(source)] == ["worker_0", "worker_2", "worker_10"]


def test_as_many_workers_are_expected_as_saved_anything():
    source = SeriesRun([Point(step, "x", 0.0, Mode.GLOBAL, f"worker_{step % 2}") for step in range(5)])
    collections = source.collections()

    assert collections is not None
    assert (collections.num_workers, list(collections.files)) == (2, ["worker_0", "worker_1"])


# order and layouts


def test_tensors_stand_in_the_order_in_which_they_first_appear():
    source = run(
        (0, "b", 1.0, Mode.TRAIN), (0, "a", 1.0, Mode.TRAIN), (1, "a", 1.0, Mode.TRAIN), (1, "b", 1.0, Mode.TRAIN)
    )

    assert [file.layout.names for file in opened(source)] == [("b", "a"), ("b", "a")]


def test_the_later_one_of_a_value_given_twice_counts():
    source = run((0, "loss", 1.0, Mode.TRAIN), (0, "loss", 3.0, Mode.TRAIN))
    (file,) = opened(source)

    assert values_of(source, file) == {"loss": 3.0}


# values


def test_none_is_not_saved():
    source = run((0, "a", None, Mode.TRAIN), (0, "b", 1.0, Mode.TRAIN), (1, "a", None, Mode.TRAIN))

    assert [(file.step, file.layout.names) for file in opened(source)] == [(0, ("b",))]


def test_nan_is_saved():
    source = run((0, "a", float("nan"), Mode.TRAIN))
    (file,) = opened(source)

    assert np.isnan(values_of(source, file)["a"])


def test_a_text_is_no_number():
    source = run((0, "words", ["a", "b"], Mode.TRAIN), (0, "word", "c", Mode.TRAIN))
    (file,) = opened(source)
    read = source.read(file, [np.arange(2)])

    assert (sorted(read.texts), read.joined) == ([0, 1], [])


def test_an_array_changed_afterwards_stays_what_it_was():
    weight = np.ones(3)
    source = run((0, "weight", weight, Mode.TRAIN))
    weight[:] = 7
    (file,) = opened(source)

    assert values_of(source, file)["weight"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [object(), 2**70, [None, 1.0]])
def test_what_is_neither_numbers_nor_text_is_refused(value: object):
    with pytest.raises(ValueError, match="'x' at step 4: numpy type object is neither numbers nor text"):
        run((4, "x", value, Mode.TRAIN))


def test_a_negative_step_is_refused():
    with pytest.raises(ValueError, match="'x': step -1 is negative"):
        run((-1, "x", 1.0, Mode.TRAIN))


# times


def test_the_first_wall_time_of_a_file_is_the_files():
    times = [None, 100.0, 200.0]
    source = SeriesRun([Point(0, f"x{at}", 0.0, Mode.TRAIN, wall_time=time) for at, time in enumerate(times)])
    (file,) = opened(source)

    assert (source.wall_time(file), source.read(file, [np.arange(3)]).wall_time, file.modified) == (100.0, 100.0, 100.0)


def test_without_wall_times_nobody_knows_when():
    source = run((0, "x", 0.0, Mode.TRAIN))
    (file,) = opened(source)

    assert (source.wall_time(file), file.modified) == (None, 0.0)


# collections and the store


def test_collections_are_names_or_patterns():
    patterns = SavedCollection("weights", include_regex=("weight$",))
    source = SeriesRun([], collections={"losses": ["loss"], "weights": patterns})
    collections = source.collections()

    assert collections is not None
    assert collections.by_name == {"losses": SavedCollection("losses", tensor_names=("loss",)), "weights": patterns}


def test_a_step_that_was_not_given_cannot_be_opened():
    with pytest.raises(KeyMissing, match="no value was given"):
        run((0, "x", 1.0, Mode.TRAIN)).open(Sighting(1, "worker_0", 0.0, 8, "1/worker_0"))


def test_a_series_run_is_never_found_in_a_store():
    source = run((0, "x", 1.0, Mode.TRAIN))

    assert (detect(source.store), SeriesRun.detect(MemoryStore()), SeriesRun in source_types()) == (None, False, False)
