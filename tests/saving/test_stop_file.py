"""The file STOP: who sees it when, and how several workers come to the same last step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluator.saving.stop_file import StopFile
from evaluator.testing import FakeClock
from evaluator.writer import TrialWriter


def ask(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "STOP").write_bytes(b"")


def test_nobody_is_stopped_without_the_file(tmp_path: Path):
    assert not TrialWriter(tmp_path / "none").should_stop


def test_the_file_is_seen_with_the_next_step_that_is_saved(tmp_path: Path):
    writer = TrialWriter(tmp_path, clock=FakeClock())
    before = writer.should_stop
    ask(tmp_path)
    writer.save(0, {"a": np.float32(1)})

    assert (before, writer.should_stop) == (False, True)


def test_without_steps_the_file_is_looked_for_once_a_second(tmp_path: Path):
    clock = FakeClock()
    writer = TrialWriter(tmp_path, clock=clock)
    seen = [writer.should_stop]
    ask(tmp_path)
    seen.append(writer.should_stop)
    clock.advance(1.0)
    seen.append(writer.should_stop)

    assert seen == [False, False, True]


def test_what_was_asked_once_stays_asked(tmp_path: Path):
    ask(tmp_path)
    writer = TrialWriter(tmp_path)
    first = writer.should_stop
    (tmp_path / "STOP").unlink()

    assert (first, writer.should_stop) == (True, True)


def last_steps(folder: Path, asked_at: int, *, late: int = 1) -> list[int | None]:
    """After which step each of three workers ends, that are up to `late` steps apart, a step a second long."""
    clock = FakeClock()
    workers = [StopFile(folder, clock, first=number == 0, alone=False) for number in range(3)]
    ended: list[int | None] = [None] * 3
    for step in range(200):
        if step == asked_at:
            ask(folder)
        for number, worker in enumerate(workers):
            at = step - late * (number % 2)
            if at >= 0 and ended[number] is None and worker.due(at):
                ended[number] = at
        clock.advance(1.0)
    return ended


def test_workers_end_after_the_same_step(tmp_path: Path):
    first, *others = last_steps(tmp_path, 50)

    assert first is not None
    assert 50 < first < 70
    assert others == [first, first]


def test_workers_agree_anew_in_a_folder_where_others_have_agreed_before(tmp_path: Path):
    (tmp_path / "STOP.step").write_text("3\n")

    assert len(set(last_steps(tmp_path, 50))) == 1


def test_workers_that_are_asked_from_the_start_end_together_too(tmp_path: Path):
    ended = last_steps(tmp_path, 0)

    assert len(set(ended)) == 1
    assert ended[0] is not None


def test_what_is_no_step_is_waited_for(tmp_path: Path):
    clock = FakeClock()
    ask(tmp_path)
    (tmp_path / "STOP.step").write_text("soon")

    assert not StopFile(tmp_path, clock, first=False, alone=False).due(10)
