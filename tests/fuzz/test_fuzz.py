"""The fuzz target itself: what it begins with and what it found before is within bounds, and a failing case is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import __main__ as program
from tests.fuzz.bounds import OutOfBounds, bounded
from tests.fuzz.pipeline import join, split
from tests.fuzz.seeds import FOUND, seeds
from tests.fuzz.strategies import STRATEGIES
from tests.fuzz.targets import TARGETS, Target

SEEDS = [(name, data) for name, inputs in seeds().items() for data in inputs]
BROKE = sorted(path.relative_to(FOUND) for path in FOUND.glob("*/*"))


@pytest.mark.parametrize(("name", "data"), SEEDS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_fuzzing_begins_with_is_within_bounds(name: str, data: bytes):
    bounded(TARGETS[name].case, data, TARGETS[name].seconds)


@pytest.mark.parametrize("path", BROKE, ids=str)
def test_what_fuzzing_found_before_is_within_bounds(path: Path):
    target = TARGETS[path.parts[0]]

    bounded(target.case, (FOUND / path).read_bytes(), target.seconds)


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_structured_inputs_are_within_bounds(name: str):
    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(STRATEGIES[name])
    def run(data: bytes) -> None:
        bounded(TARGETS[name].case, data, TARGETS[name].seconds)

    run()


@given(st.lists(st.tuples(st.text("ab/", min_size=1), st.binary(max_size=9))))
def test_files_come_back_from_bytes(files: list[tuple[str, bytes]]):
    assert split(join(files)) == files


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (lambda _: bytearray(2**27), "bytes of memory"),
        (lambda _: sum(range(10**6)), "0.001 s would be right"),
        (lambda _: int("x"), "invalid literal"),
    ],
    ids=["memory", "time", "an error that is not documented"],
)
def test_a_case_out_of_bounds_is_noticed(case, message: str):
    with pytest.raises((OutOfBounds, ValueError), match=message):
        bounded(case, b"", 0.001)


def test_a_failing_case_is_written_down_and_its_path_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(TARGETS, "index", Target(lambda _: int("x")))
    monkeypatch.setattr("sys.argv", [
        "fuzz", "--seconds", "0.01", "--target", "index", "--guided", "no", "--work", str(tmp_path),
    ])  # fmt: skip

    assert program.main() == 1
    (path,) = (tmp_path / "index" / "found").iterdir()
    assert str(path) in capsys.readouterr().out
