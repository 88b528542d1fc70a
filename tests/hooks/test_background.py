"""The thread that writes: in order, not for ever, and whatever fails."""

from __future__ import annotations

import threading

from evaluator.hooks._background import Background
from evaluator.saving.failures import Failures


def test_work_is_done_in_the_order_in_which_it_came():
    done: list[int] = []
    background = Background(Failures())
    for number in range(50):
        background.put(lambda number=number: done.append(number))  # type: ignore[misc]

    assert background.finish()
    assert done == list(range(50))


def test_it_is_done_in_another_thread():
    seen: list[threading.Thread] = []
    background = Background(Failures())
    background.put(lambda: seen.append(threading.current_thread()))
    background.finish()

    assert seen != [threading.current_thread()]


def test_work_that_fails_is_counted_and_the_rest_is_done():
    failures, done = Failures(), []
    background = Background(failures)
    background.put(lambda: done.append(1 // 0))
    background.put(lambda: done.append(1))

    assert background.finish()
    assert (done, failures.count) == ([1], 1)


def test_a_disk_that_hangs_costs_steps_but_does_not_hang_the_training():
    failures, stuck = Failures(), threading.Event()
    background = Background(failures, waiting=1, patience=0.01)
    for _ in range(10):
        background.put(lambda: stuck.wait(60))
    finished = background.finish()
    lost = failures.count
    stuck.set()

    assert not finished
    assert lost >= 8
    assert "the disk did not keep up" in failures.first


def test_without_work_there_is_no_thread():
    before = threading.active_count()

    assert Background(Failures()).finish()
    assert threading.active_count() == before


def test_it_goes_on_after_the_end():
    done: list[int] = []
    background = Background(Failures())
    background.put(lambda: done.append(1))
    background.finish()
    background.put(lambda: done.append(2))
    background.finish()

    assert done == [1, 2]
