"""Places to read in: so many at a time, in the order of coming, and nobody keeps one who is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.places import OneOfMany, ReadingPlaces, Share
from evaluator.sources import detect
from evaluator.storage import open_store
from tests.s3.jobs import HEALTHY, save_run

DEADLINE = 30


class Reader(threading.Thread):
    """Takes a place until it is let go."""

    def __init__(self, places: ReadingPlaces, order: list[int], number: int):
        super().__init__(daemon=True)
        self.places, self.order, self.number = places, order, number
        self.stopped = False
        self.there: bool | None = None
        self.inside, self.leave = threading.Event(), threading.Event()

    def run(self) -> None:
        with self.places.one(lambda: self.stopped, lambda: None) as self.there:
            self.order.append(self.number)
            self.inside.set()
            self.leave.wait(DEADLINE)


@pytest.fixture
def readers() -> Iterator[list[Reader]]:
    made: list[Reader] = []
    yield made
    for one in made:
        one.leave.set()
        one.join(DEADLINE)
        assert not one.is_alive()


def start(readers: list[Reader], places: ReadingPlaces, count: int) -> list[int]:
    order: list[int] = []
    for number in range(count):
        one = Reader(places, order, number)
        readers.append(one)
        waiting = len(places._waiting)
        one.start()
        while not one.inside.wait(0.001) and len(places._waiting) == waiting:
            pass
    return order


def test_so_many_read_at_a_time_and_the_others_follow_in_the_order_of_coming(readers: list[Reader]):
    places = ReadingPlaces(2)
    order = start(readers, places, 5)

    assert order == [0, 1]
    for number, follower in ((0, 2), (2, 3), (1, 4)):
        readers[number].leave.set()
        readers[number].join(DEADLINE)
        assert readers[follower].inside.wait(DEADLINE)
    assert order == [0, 1, 2, 3, 4]


def test_one_who_is_stopped_while_waiting_gets_no_place_and_takes_none_from_others(readers: list[Reader]):
    places = ReadingPlaces(1)
    start(readers, places, 3)
    readers[1].stopped = True
    assert readers[1].inside.wait(DEADLINE)
    readers[0].leave.set()
    readers[0].join(DEADLINE)

    assert readers[2].inside.wait(DEADLINE)
    assert [one.there for one in readers] == [True, False, True]


def test_a_place_is_free_again_after_an_error():
    places = ReadingPlaces(1)
    with pytest.raises(KeyError), places.one(lambda: False, lambda: None):
        raise KeyError

    with places.one(lambda: True, lambda: None) as there:
        assert there


def test_one_who_may_not_tell_any_more_keeps_no_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evaluator.places.LOOK_UP", 0.001)
    monkeypatch.setattr("evaluator.places.SPEAK_UP", 1)
    places = ReadingPlaces(1)

    def fail() -> None:
        raise OSError("the output is gone")

    with places.one(lambda: False, lambda: None), pytest.raises(OSError, match="gone"), places.one(lambda: False, fail):
        pass
    with places.one(lambda: True, lambda: None) as there:
        assert there


def test_a_job_alone_has_the_whole_budget_and_one_of_many_its_part(tmp_path: Path):
    source: Any = detect(open_store(str(save_run(tmp_path / "run", [HEALTHY]))))
    alone, many = Share(2**30), OneOfMany(2**30, ReadingPlaces(4), 256)
    engines = [share.engine(source, lambda: False, lambda: None) for share in (alone, many)]

    assert [share.kept for share in (alone, many)] == [2**30, 2**22]
    assert [engine._budget for engine in engines] == [2**29, 2**27]


def test_steps_are_read_in_a_place_and_looking_for_none_needs_none(tmp_path: Path):
    source: Any = detect(open_store(str(save_run(tmp_path / "run", [HEALTHY]))))
    places = ReadingPlaces(1)
    engine = OneOfMany(2**30, places, 2).engine(source, lambda: True, lambda: None)
    step: Any = type("Step", (), {"files": []})()

    with places.one(lambda: False, lambda: None):
        assert list(engine.ahead([], lambda _: None)) == []  # type: ignore[arg-type,return-value]
        # the other place is taken, and the job is stopped
        assert list(engine.ahead([step], lambda _: None)) == []  # type: ignore[arg-type,return-value]
    assert [summary.step for summary in engine.ahead([step], lambda _: None)] == [step]  # type: ignore[arg-type,return-value]
    engine.close()
