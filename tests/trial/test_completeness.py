"""When a step is taken: the table of design section 10, and the state machine of the reference in these terms."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.trial.completeness import Completeness, Seen, Waits, takeable

GRACE, QUORUM = 30.0, 300.0
WAITS = Waits(GRACE, QUORUM)

ABC = [0, 1, 2]


def taken(
    workers: dict[int, int], *, expected: int | None = 3, ended: bool = False, age: float = GRACE, spread: float = 0
) -> list[tuple[int, str]]:
    """What is taken of steps whose files, from so many workers each, all came `age` seconds ago."""
    steps = [Seen(step, count, -age - spread, -age) for step, count in sorted(workers.items())]
    found = list(takeable(steps, expected=expected, now=0.0, waits=WAITS, ended=ended))
    return [(step, completeness.value) for step, completeness in found]


def complete(*steps: int) -> list[tuple[int, str]]:
    return [(step, "complete") for step in steps]


def partial(*steps: int) -> list[tuple[int, str]]:
    return [(step, "partial") for step in steps]


# conformance.md section C: what each test of the reference saved, and which steps are complete by our rule. Where the
# reference completes a step because a later one is complete, we call it partial: a worker is missing.
TENS = range(0, 80, 10)
WITHOUT_4 = [0, 1, 2, 3, 5, 6]
FULL = dict.fromkeys(range(7), 3)
STRAGGLER = {0: 3, 1: 3, 2: 3, 3: 2, 4: 2, 5: 2, 6: 2}
CAUGHT_UP = {0: 3, 1: 3, 2: 3, 3: 2, 4: 2, 5: 2, 6: 3}
HOLE = {0: 3, 1: 3, 2: 3, 4: 2, 5: 2, 6: 3}
HOLE_AND_STRAGGLER = {0: 3, 1: 3, 2: 3, 4: 2, 5: 2, 6: 2}


@pytest.mark.parametrize(
    ("workers", "expected", "ended", "result"),
    [
        pytest.param(dict.fromkeys(range(7), 1), 1, True, complete(*range(7)), id="single, all, ended"),
        pytest.param(dict.fromkeys(range(7), 1), 1, False, complete(*range(7)), id="single, all, running"),
        pytest.param(dict.fromkeys(TENS, 1), 1, True, complete(*TENS), id="two modes, ended"),
        pytest.param(dict.fromkeys(TENS, 1), 1, False, complete(*TENS), id="two modes, running"),
        pytest.param(dict.fromkeys(WITHOUT_4, 1), 1, True, complete(*WITHOUT_4), id="single, hole, ended"),
        pytest.param(dict.fromkeys(WITHOUT_4, 1), 1, False, complete(*WITHOUT_4), id="single, hole"),
        pytest.param(FULL, 3, True, complete(*range(7)), id="three, all, ended"),
        pytest.param(FULL, 3, False, complete(*range(7)), id="three, all, running"),
        pytest.param(STRAGGLER, 3, True, complete(*ABC) + partial(3, 4, 5, 6), id="three, straggler, ended"),
        pytest.param(STRAGGLER, 3, False, complete(*ABC), id="three, straggler, running"),
        pytest.param(CAUGHT_UP, 3, False, complete(*ABC) + partial(3, 4, 5) + complete(6), id="three, caught up"),
        pytest.param(CAUGHT_UP, 3, True, complete(*ABC) + partial(3, 4, 5) + complete(6), id="the same, ended"),
        pytest.param(HOLE, 3, False, complete(*ABC) + partial(4, 5) + complete(6), id="three, hole, later complete"),
        pytest.param(HOLE_AND_STRAGGLER, 3, False, complete(*ABC), id="three, hole, partial, running"),
        pytest.param(HOLE_AND_STRAGGLER, 3, True, complete(*ABC) + partial(4, 5, 6), id="three, hole, partial, ended"),
        pytest.param(dict.fromkeys(range(20), 1), 3, False, [], id="too many steps skipped: by time, not by count"),
        pytest.param(
            {step: 1 + (step not in {3, 4, 8, 9}) for step in range(10)}, 2, False,
            complete(0, 1, 2) + partial(3, 4) + complete(5, 6, 7), id="partially written tensors",
        ),
    ],
)  # fmt: skip
def test_the_reference_s_scenarios(workers: dict[int, int], expected: int, ended: bool, result: list[tuple[int, str]]):
    assert taken(workers, expected=expected, ended=ended) == result


def test_nothing_is_taken_of_nothing():
    assert (taken({}), taken({}, ended=True), taken({}, expected=None)) == ([], [], [])


@pytest.mark.parametrize(("age", "result"), [(GRACE, partial(0) + complete(1)), (GRACE - 0.001, [])])
def test_a_later_complete_step_settles_earlier_ones_after_the_grace_time(age: float, result: list[tuple[int, str]]):
    assert taken({0: 1, 1: 3}, age=age) == result


def test_the_grace_time_counts_from_the_last_file_of_the_later_step():
    assert taken({0: 1, 1: 3}, age=GRACE - 1, spread=100) == []


def test_a_complete_step_does_not_settle_itself_or_later_ones():
    assert taken({0: 3, 1: 2, 2: 2}, age=QUORUM - 1) == complete(0)


@pytest.mark.parametrize(("age", "result"), [(QUORUM, partial(0, 1)), (QUORUM - 0.001, [])])
def test_a_step_is_taken_when_the_quorum_time_has_passed(age: float, result: list[tuple[int, str]]):
    assert taken({0: 1, 1: 1}, age=age) == result


def test_the_quorum_time_counts_from_the_first_file():
    assert taken({0: 1}, age=0, spread=QUORUM) == partial(0)


def test_a_step_that_must_wait_holds_up_complete_ones():
    assert taken({0: 2, 1: 3}, age=GRACE - 1) == []


def test_a_step_without_a_readable_file_waits_as_one_that_is_not_there():
    assert (taken({0: 0}, expected=1), taken({0: 0}, expected=1, age=QUORUM)) == ([], partial(0))


def test_more_workers_than_expected_are_complete():
    assert taken({0: 5}, expected=2) == complete(0)


def test_an_unknown_number_of_workers_waits_for_the_quorum_time():
    assert (taken({0: 1}, expected=None), taken({0: 1}, expected=None, age=QUORUM)) == ([], complete(0))


def test_with_the_number_unknown_to_the_end_those_that_wrote_are_all():
    assert taken({0: 1, 5: 2}, expected=None, ended=True, age=0) == complete(0, 5)


def test_without_waiting_times_everything_is_taken():
    found = list(takeable([Seen(0, 1, 0.0, 0.0)], expected=2, now=0.0, waits=Waits(0, 0), ended=False))

    assert found == [(0, Completeness.PARTIAL)]


STEPS = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 400), st.floats(0, 400)), max_size=8).map(
    lambda rows: [
        Seen(step, workers, min(one, other), max(one, other)) for step, (workers, one, other) in enumerate(rows)
    ]
)


@given(STEPS, st.one_of(st.none(), st.integers(1, 4)), st.floats(400, 1200))
def test_what_is_taken_is_a_leading_part_and_grows_with_time(steps: Sequence[Seen], expected: int | None, now: float):
    earlier = list(takeable(steps, expected=expected, now=now, waits=WAITS, ended=False))
    later = list(takeable(steps, expected=expected, now=now + 50, waits=WAITS, ended=False))

    assert [step for step, _ in earlier] == [seen.step for seen in steps[: len(earlier)]]
    assert later[: len(earlier)] == earlier


@given(STEPS, st.one_of(st.none(), st.integers(1, 4)), st.floats(0, 1200))
def test_nothing_waits_beyond_the_quorum_time_or_the_end(steps: Sequence[Seen], expected: int | None, now: float):
    after = list(takeable(steps, expected=expected, now=400 + QUORUM, waits=WAITS, ended=False))
    ended = list(takeable(steps, expected=expected, now=now, waits=WAITS, ended=True))

    assert (len(after), len(ended)) == (len(steps), len(steps))


# steps that may get more values


def open_steps(first: Sequence[float], last: Sequence[float], open_from: float, *, ended: bool = False) -> list[int]:
    """What is taken of steps 0, 1, ... of one worker, with the ages of their first and last values."""
    steps = [Seen(step, 1, -ages[0], -ages[1]) for step, ages in enumerate(zip(first, last, strict=True))]
    found = list(takeable(steps, expected=1, now=0.0, waits=WAITS, ended=ended, open_from=open_from))
    return [step for step, _ in found]


@pytest.mark.parametrize(
    ("first", "last", "open_from", "expected"),
    [
        pytest.param([5, 4, 3], [5, 4, 3], 2, [0, 1], id="the newest is open"),
        pytest.param([5, 4, 3], [5, 4, 3], 1, [0], id="two are open"),
        pytest.param([90, 40, 29], [90, 1, 1], 0, [0], id="a later step began long ago, another did not"),
        pytest.param([90, 40, 30], [90, 1, 1], 0, [0, 1], id="later steps began long ago"),
        pytest.param([900, 400], [299, 299], 0, [0], id="the newest was touched not so long ago"),
        pytest.param([900, 400], [400, 300], 0, [0, 1], id="nothing has come for the quorum time"),
        pytest.param([1, 1], [1, 1], float("inf"), [0, 1], id="no step is open"),
    ],
)
def test_an_open_step_waits_for_a_later_one(
    first: Sequence[float], last: Sequence[float], open_from: float, expected: list[int]
):
    assert open_steps(first, last, open_from) == expected


def test_no_step_is_open_at_the_end():
    assert open_steps([1, 1], [1, 1], 0, ended=True) == [0, 1]
