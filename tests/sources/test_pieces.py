"""Parts of bytes laid end to end come to the same, whichever way they are copied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.sources.pieces import Pieces

DATA = bytes(np.random.default_rng(0).integers(0, 256, 2000, dtype=np.uint8))


@given(
    st.lists(st.tuples(st.integers(0, 1900), st.integers(1, 40), st.integers(1, 30), st.integers(0, 60)), min_size=1)
)
def test_parts_come_in_their_order_whether_they_lie_regularly_or_not(blocks: list[tuple[int, int, int, int]]):
    spans = [
        (start + at * (size + gap), start + at * (size + gap) + size)
        for start, size, count, gap in blocks
        for at in range(count)
        if start + at * (size + gap) + size <= len(DATA)
    ]
    if spans:
        laid = Pieces(spans).of(DATA, copied=False)

        assert laid.tobytes() == b"".join(DATA[start:stop] for start, stop in spans)
        assert not laid.flags.writeable


@pytest.mark.parametrize("spans", [[(3, 3 + 400)], [(0, 4), (8, 12)], [(510 * at, 510 * at + 400) for at in range(3)]])
def test_numbers_keep_their_values(spans: list[tuple[int, int]]):
    wanted = np.concatenate([np.frombuffer(DATA[start:stop], np.float32) for start, stop in spans])

    assert Pieces(spans).of(DATA, copied=False).view(np.float32).tobytes() == wanted.tobytes()


def test_a_lone_part_is_a_view_unless_a_copy_is_asked_for():
    pieces = Pieces([(100, 1900)])

    assert np.shares_memory(pieces.of(DATA, copied=False), np.frombuffer(DATA, np.uint8))
    assert not np.shares_memory(pieces.of(DATA, copied=True), np.frombuffer(DATA, np.uint8))
