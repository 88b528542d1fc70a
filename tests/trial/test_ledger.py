"""The ledger remembers which file was dealt with, in whatever order they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluator.trial.ledger import Ledger, Taken


def test_an_empty_ledger_knows_nothing():
    ledger = Ledger()

    assert (ledger.find("a", 0), ledger.last_step("a"), ledger.steps_of("a"), ledger.workers) == (None, None, 0, [])
    assert not ledger.knows(0)


def test_workers_are_kept_apart():
    ledger = Ledger()
    ledger.record("a", 1, 10.0, 5)
    ledger.record("b", 2, 20.0, 6, used=False)

    assert (ledger.find("a", 1), ledger.find("b", 1), ledger.find("b", 2)) == (
        Taken(10.0, 5, used=True),
        None,
        Taken(20.0, 6, used=False),
    )
    assert (ledger.workers, ledger.knows(2), ledger.knows(3)) == (["a", "b"], True, False)


def test_an_empty_file_that_was_not_used_is_not_one_that_was():
    ledger = Ledger()
    ledger.record("a", 1, 1.0, 0, used=False)
    ledger.record("a", 2, 1.0, 0)

    assert (ledger.find("a", 1), ledger.find("a", 2)) == (Taken(1.0, 0, used=False), Taken(1.0, 0, used=True))


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1e12), st.integers(0, 2**40), st.booleans())))
def test_the_last_record_of_a_step_counts_in_any_order(records: list[tuple[int, float, int, bool]]):
    ledger = Ledger()
    expected = {}
    for step, modified, size, used in records:
        ledger.record("a", step, modified, size, used=used)
        expected[step] = Taken(modified, size, used)

    assert {step: ledger.find("a", step) for step in range(51) if ledger.find("a", step)} == expected
    assert (ledger.steps_of("a"), ledger.last_step("a")) == (len(expected), max(expected, default=None))
