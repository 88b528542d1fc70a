"""What is worked out once for all rows that are alike holds for those only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from builtin_rules.losses import _layout
from builtin_rules.losses._layout import EVALUATION, TRAINING, layout_of
from builtin_rules.losses._levels import add, start
from evaluator.modes import Mode
from evaluator.rule import Column, Row


def row(columns: Sequence[Column], modes: Sequence[int], sizes: Sequence[float] | None = None) -> Row:
    values = np.array([[0.5, size] for size in sizes or [1.0] * len(modes)])
    return Row(values, np.array(modes, np.int8), 0, columns)


def slots(of: Row) -> list[int]:
    return [place.slot for place in layout_of(of).places]


def columns_of(*names: str) -> list[Column]:
    return [Column(name, "worker_0") for name in names]


def test_rows_that_are_alike_share_a_layout_whatever_their_values():
    columns = columns_of("loss")
    one, other = row(columns, [Mode.TRAIN]), row(columns, [Mode.TRAIN])
    other.values[0, 0] = 7.0
    assert layout_of(one) is layout_of(other)


def test_the_mode_the_size_and_what_was_saved_make_a_difference():
    columns = columns_of("loss", "eval_loss")
    assert slots(row(columns, [Mode.TRAIN, Mode.TRAIN])) == [TRAINING, 2 + TRAINING]
    assert slots(row(columns, [Mode.EVAL, Mode.TRAIN])) == [EVALUATION, 2 + TRAINING]
    assert slots(row(columns, [Mode.GLOBAL, Mode.GLOBAL])) == [TRAINING, 2 + EVALUATION]
    assert slots(row(columns, [0, Mode.TRAIN])) == [2 + TRAINING]
    assert slots(row(columns, [Mode.PREDICT, Mode.TRAIN])) == [2 + TRAINING]
    assert slots(row(columns, [Mode.TRAIN, Mode.TRAIN], [3.0, 1.0])) == [2 + TRAINING]
    assert slots(row(columns, [Mode.TRAIN, Mode.TRAIN], [float("nan"), 1.0])) == [2 + TRAINING]


def test_columns_that_are_added_to_a_list_are_seen():
    columns = columns_of("loss")
    assert slots(row(columns, [Mode.TRAIN])) == [TRAINING]
    columns.append(Column("eval_loss", "worker_0"))
    assert slots(row(columns, [Mode.GLOBAL, Mode.GLOBAL])) == [TRAINING, 2 + EVALUATION]


def test_columns_in_the_memory_of_others_that_are_gone_are_not_taken_for_them():
    for number in range(3 * _layout.MOST_LAYOUTS):
        name = "eval_loss" if number % 2 else "loss"
        assert slots(row(columns_of(name), [Mode.GLOBAL])) == [number % 2]


def test_as_many_layouts_as_there_may_be_are_kept():
    columns = columns_of("loss")
    for size in range(3 * _layout.MOST_LAYOUTS):
        layout_of(row(columns, [Mode.TRAIN], [float(size)]))
    assert len(_layout._layouts) <= _layout.MOST_LAYOUTS


@pytest.mark.parametrize("names", [("loss",), ("box_loss", "cls_loss")])
def test_two_runs_side_by_side_are_folded_as_each_alone(names: tuple[str, ...]):
    def folded(turns: int) -> list[np.ndarray]:
        runs = [(columns_of(*names[:: 1 - 2 * turn]), start()) for turn in range(turns)]
        for step in range(12):
            for turn, (columns, state) in enumerate(runs):
                values = np.array([[1.0 + step + turn + at, 1.0] for at in range(len(columns))])
                modes = np.array([Mode.TRAIN] * len(columns), np.int8)
                runs[turn] = columns, add(state, Row(values, modes, step, columns))
        return [state["tracks"] for _, state in runs]

    alone, beside = folded(1), folded(2)
    np.testing.assert_array_equal(alone[0], beside[0])
    assert not np.array_equal(beside[0], beside[1], equal_nan=True)
