"""The pace of many jobs, and the clock of one of them."""

from __future__ import annotations

import threading

import pytest

from evaluator.storage._sharing import Pace, Shared, shared_here, sharing
from evaluator.testing import FakeClock
from evaluator.watching.pacing import SpreadClock


def test_what_comes_at_once_is_spread_after_a_burst_of_a_second():
    clock = FakeClock()
    pace = Pace(clock, 10)
    for _ in range(50):
        pace.take()

    assert clock.monotonic() == pytest.approx(4.0)


def test_what_comes_slowly_enough_does_not_wait():
    clock = FakeClock()
    pace = Pace(clock, 10)
    for _ in range(50):
        pace.take()
        clock.advance(0.1)

    assert clock.waits == []


def test_a_silence_does_not_save_up_more_than_a_second():
    clock = FakeClock()
    pace = Pace(clock, 10)
    pace.take()
    clock.advance(1000)
    for _ in range(20):
        pace.take()

    assert clock.monotonic() == pytest.approx(1001.0)


def test_nobody_who_is_told_to_stop_is_held_up():
    clock = FakeClock()
    pace = Pace(clock, 0.01)
    clock.wake()
    for _ in range(5):
        pace.take()

    assert clock.monotonic() == 0


def spread(clock: FakeClock, shortest: float = 1.0) -> SpreadClock:
    return SpreadClock(clock, Pace(clock, 1e6), shortest)


def test_long_pauses_differ_by_chance_and_are_never_longer():
    clock = FakeClock()
    one = spread(clock)
    for _ in range(100):
        assert not one.wait(30)

    assert min(clock.waits) >= 24
    assert max(clock.waits) <= 30
    assert len(set(clock.waits)) > 50


@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_short_pauses_are_as_long_as_they_are_meant(seconds: float):
    clock = FakeClock()
    spread(clock).wait(seconds)

    assert clock.waits == [seconds]


def test_waking_one_job_wakes_no_other():
    clock = FakeClock()
    one, other = spread(clock), spread(clock)
    one.wake()

    assert (one.wait(5), other.wait(5)) == (True, False)


def test_waking_the_clock_of_all_wakes_each():
    clock = FakeClock()
    one = spread(clock)
    clock.wake()

    assert one.wait(5)


def test_threads_that_work_for_a_job_wait_exactly():
    clock = FakeClock()
    one = spread(clock)
    thread = threading.Thread(target=one.wait, args=(30,))
    thread.start()
    thread.join()

    assert clock.waits == [30]


def test_stores_share_only_what_is_shared_where_they_are_opened():
    shared = Shared()
    seen: list[Shared | None] = []
    with sharing(shared):
        thread = threading.Thread(target=lambda: seen.append(shared_here()))
        thread.start()
        thread.join()
        inside = shared_here()

    assert (inside, shared_here(), seen) == (shared, None, [None])


def test_a_client_that_is_dropped_is_made_anew_once():
    made: list[object] = []
    shared = Shared()

    def make() -> object:
        made.append(object())
        return made[-1]

    first = shared.client(make)
    shared.drop(first)
    second = shared.client(make)
    # another thread that had the first one is late
    shared.drop(first)

    assert shared.client(make) is second
    assert made == [first, second]
