"""What every source does; a format's test file inherits `SourceContract` and says how its runs are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from evaluator.modes import Mode
from evaluator.segments import Array
from evaluator.sources.base import VALUE, FileValues, Positions, Source, StepFile


@dataclass
class SavedFile:
    """What one worker saved at one step in one mode."""

    step: int
    values: Mapping[str, Array] = field(default_factory=dict)
    worker: str = "worker_0"
    mode: Mode = Mode.GLOBAL


Collections = Mapping[str, Sequence[str]]

NUMBERS: dict[str, Array] = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "zero dimensions": np.array(0.5, np.float64),
    "other matrix": -np.arange(4, dtype=np.float32).reshape(4, 1),
    "whole": np.array([1, -2, 3], np.int64),
    "yes and no": np.array([True, False]),
    "half": np.array([0.25, np.inf, np.nan], np.float16),
    "bytes": np.arange(3, dtype=np.uint8),
}
WORDS: dict[str, Array] = {"words": np.array(["ä", "", "longer"])}
NOTHING: dict[str, Array] = {"nothing": np.zeros((0, 3), np.float32)}
EVERYTHING = {**NUMBERS, **WORDS, **NOTHING}


def opened(source: Source) -> list[StepFile]:
    """All step files there are."""
    return [file for sighting in source.sightings() for file in source.open(sighting)]


def positions(file: StepFile, *names: str) -> Positions:
    return np.array([file.layout.at[name][VALUE] for name in names], np.int64)


def values_of(source: Source, file: StepFile) -> dict[str, Array]:
    """Every value of a file by its name."""
    read = source.read(file, [positions(file, *(name for name, kinds in file.layout.at.items() if VALUE in kinds))])
    assert read.problems == {}
    return {file.layout.names[at]: array for at, array in read.arrays().items()}


def same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    """Whether names, types, shapes and values are equal; NaN equals NaN."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind in "fc")
        for name in one
    )


def where_from(read: FileValues) -> list[int]:
    """Every position that a read says something about, as often as it does."""
    joined = [at for _, found, _ in read.joined for at in found.tolist()]
    return sorted([*joined, *read.texts, *read.empty, *read.problems])


class SourceContract:
    """The behaviours of `Source`; `make` gives a run in which these files were saved."""

    def make(self, files: Sequence[SavedFile], collections: Collections | None = None) -> Source:
        raise NotImplementedError("a format's test class makes a run")

    @pytest.fixture
    def everything(self) -> Source:
        """A run of one file with values of every kind."""
        return self.make([SavedFile(3, EVERYTHING, mode=Mode.TRAIN)])

    # listing

    def test_a_run_in_which_nothing_was_saved_lists_nothing(self):
        assert self.make([]).sightings() == []

    def test_files_are_listed_once_each_in_the_order_of_the_steps(self):
        saved = [(step, worker) for step in (9, 10, 1000, 2, 128) for worker in ("worker_0", "worker_1")]
        source = self.make([SavedFile(step, {"x": np.ones(1)}, worker) for step, worker in saved])
        listed = [(sighting.step, sighting.worker) for sighting in source.sightings()]

        assert [step for step, _ in listed] == sorted(step for step, _ in saved)
        assert sorted(listed) == sorted(saved)

    @pytest.mark.parametrize("from_step", [0, 1, 999, 1000, 1001, 5000])
    def test_a_listing_can_begin_at_a_step(self, from_step: int):
        steps = [0, 1, 999, 1000, 1001, 2000]
        source = self.make([SavedFile(step, {"x": np.ones(1)}) for step in steps])
        listed = [sighting.step for sighting in source.sightings(from_step=from_step)]

        assert listed == [step for step in steps if step >= from_step]

    def test_listing_again_shows_the_same(self, everything: Source):
        assert everything.sightings() == everything.sightings()

    # what a file holds

    def test_a_file_tells_its_step_worker_and_mode(self):
        source = self.make([SavedFile(7, {"x": np.ones(1)}, "worker_11", Mode.EVAL)])

        assert [(file.step, file.worker, file.mode) for file in opened(source)] == [(7, "worker_11", Mode.EVAL)]

    def test_names_stand_in_the_order_in_which_they_were_saved(self):
        names = ["z", "a", "m/w:0", "x[0](1)", "größe", "n" * 300]
        (file,) = opened(self.make([SavedFile(0, {name: np.ones(1) for name in names})]))

        assert (list(file.layout.names), set(file.layout.kinds)) == (names, {VALUE})

    def test_files_with_the_same_entries_share_one_layout(self):
        saved = [
            SavedFile(step, {"a": np.ones(step + 1), "b": np.ones(1)}, worker) for step in (0, 1) for worker in "vw"
        ]
        files = opened(self.make([*saved, SavedFile(2, {"b": np.ones(1)})]))

        assert [file.layout is files[0].layout for file in files] == [True, True, True, True, False]

    # values

    def test_values_come_back_with_type_and_shape(self, everything: Source):
        (file,) = opened(everything)

        assert same(values_of(everything, file), EVERYTHING)

    def test_reading_again_gives_the_same(self, everything: Source):
        (file,) = opened(everything)

        assert same(values_of(everything, file), values_of(everything, file))

    def test_what_was_asked_for_is_told_once_and_nothing_else(self, everything: Source):
        (file,) = opened(everything)
        asked = positions(file, "whole", "words", "nothing", "matrix")

        assert where_from(everything.read(file, [asked])) == sorted(asked.tolist())

    def test_asking_for_nothing_gives_nothing(self, everything: Source):
        (file,) = opened(everything)
        read = everything.read(file, [np.empty(0, np.int64)])

        assert (where_from(read), where_from(everything.read(file, []))) == ([], [])

    def test_each_group_is_joined_by_itself_and_by_type_and_size(self, everything: Source):
        (file,) = opened(everything)
        groups = [positions(file, "other matrix", "matrix", "whole"), positions(file, "half"), positions(file, "bytes")]
        read = everything.read(file, groups)
        joined = {
            (group, segments.flat.dtype.name, *set(segments.counts.tolist())): found.tolist()
            for group, found, segments in read.joined
        }

        assert {key: sorted(found) for key, found in joined.items()} == {
            (0, "float32", 6): positions(file, "matrix").tolist(),
            (0, "float32", 4): positions(file, "other matrix").tolist(),
            (0, "int64", 3): positions(file, "whole").tolist(),
            (1, "float16", 3): positions(file, "half").tolist(),
            (2, "uint8", 3): positions(file, "bytes").tolist(),
        }

    def test_text_and_empty_tensors_are_apart(self, everything: Source):
        (file,) = opened(everything)
        read = everything.read(file, [positions(file, "words", "nothing")])

        assert (list(read.texts), list(read.empty), read.joined) == (
            positions(file, "words").tolist(),
            positions(file, "nothing").tolist(),
            [],
        )

    def test_the_size_is_known_without_reading(self, everything: Source):
        (file,) = opened(everything)
        sizes = [everything.size_of(file, [positions(file, *names)]) for names in ([], ["matrix"], ["matrix", "half"])]

        assert sizes[0] == 0
        assert 24 <= sizes[1] < sizes[2]

    def test_the_wall_time_is_a_number_or_not_known(self, everything: Source):
        (file,) = opened(everything)

        assert isinstance(everything.wall_time(file), float | None)

    # the run

    def test_collections_are_told_once_until_they_change(self):
        source = self.make([SavedFile(0, {"a": np.ones(1)})], {"losses": ["a", "b"]})
        first, second = source.collections(), source.collections()

        assert first is not None
        assert (first.by_name["losses"].tensor_names, second) == (("a", "b"), None)

    def test_whether_the_run_has_ended_is_known(self, everything: Source):
        assert everything.ended() in {True, False}
