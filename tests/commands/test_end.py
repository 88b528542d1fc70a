"""end: the end marker, where nobody else writes it."""

from __future__ import annotations

from evaluator.formats.key_names import END_MARKER
from tests.commands.program import HEALTHY, call, run, save, small_trial, writer


def test_the_marker_is_written_once_and_finding_it_is_fine(tmp_path, capsys):
    save(writer(tmp_path), 0, HEALTHY)

    first = call(capsys, "end", tmp_path)
    second = call(capsys, "end", tmp_path)

    assert (first.code, first.out) == (0, f"{tmp_path}: the end marker {END_MARKER} is written\n")
    assert (second.code, second.out) == (0, f"{tmp_path}: the end marker {END_MARKER} was there already\n")
    assert (tmp_path / END_MARKER).read_bytes() == b""


def test_a_run_that_saved_nothing_can_be_ended(tmp_path, capsys):
    assert call(capsys, "end", tmp_path).code == 0
    assert (tmp_path / END_MARKER).exists()


def test_a_folder_that_is_not_there_is_not_made(tmp_path, capsys):
    ran = call(capsys, "end", tmp_path / "no")

    assert (ran.code, ran.err) == (2, f"{tmp_path / 'no'}: does not exist; the folder of a trial\n")
    assert not (tmp_path / "no").exists()


def test_a_folder_of_trials_is_not_marked(tmp_path, capsys):
    small_trial(tmp_path / "one")

    ran = call(capsys, "end", tmp_path)

    assert (ran.code, (tmp_path / END_MARKER).exists()) == (2, False)
    assert ran.err == f"{tmp_path}: is not a trial, but holds some; name one of them: {tmp_path}/one\n"


def test_a_folder_that_holds_trials_is_refused_even_when_it_looks_like_one(tmp_path):
    small_trial(tmp_path / "first")
    (tmp_path / END_MARKER).touch()

    ran = run("end", tmp_path)

    assert ran.code == 2
    assert f"{tmp_path}/first" in ran.err
