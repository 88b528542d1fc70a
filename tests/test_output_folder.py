"""The output folder is checked, locked, and cleared of our own files only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator import strict_json
from evaluator.errors import OutputError
from evaluator.output_folder import CHECKPOINT_MARK, OutputFolder
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock
from tests.sinks.made import make_finding, make_rule, make_status


def folder_at(root: Path | str, folders: Sequence[str] = ()) -> OutputFolder:
    """An output in a folder."""
    return OutputFolder(FileStore(root), FakeClock(), folders)


@pytest.fixture
def root(tmp_path: Path):
    return tmp_path / "rule-output"


def write_status(root: Path, *rules, ended_at: str | None = None, **changes: object) -> None:
    status = make_status(*rules)
    status.job.ended_at = ended_at
    root.mkdir(parents=True, exist_ok=True)
    (root / "status.json").write_bytes(strict_json.dumps({**status.document(), **changes}, pretty=True))


def write_finding(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(make_finding().line())


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())


class TestPrepare:
    def test_it_makes_the_folder_and_leaves_nothing_but_the_lock(self, root):
        folder = folder_at(root / "deep" / "er")
        folder.prepare()
        folder.release()

        assert files(root) == ["deep/er/.lock"]

    def test_a_file_in_its_place_is_named(self, root):
        root.write_text("a file")

        with pytest.raises(OutputError, match=r"rule-output: cannot be written: is not a folder; a folder that user"):
            folder_at(root).prepare()

    @pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written_is_named(self, root):
        root.mkdir(mode=0o500)

        with pytest.raises(OutputError, match="cannot be written: Permission denied"):
            folder_at(root).prepare()

    def test_a_configuration_s_folder_that_is_a_file_is_named(self, root):
        root.mkdir()
        (root / "AllZero").write_text("a file")

        with pytest.raises(OutputError, match="is not a folder"):
            folder_at(root, ["AllZero"]).prepare()

    def test_control_characters_of_a_path_are_escaped(self, tmp_path):
        (tmp_path / "a\x1b[2J").write_text("a file")

        with pytest.raises(OutputError) as raised:
            folder_at(tmp_path / "a\x1b[2J").prepare()
        assert r"a\x1b[2J" in str(raised.value)


class TestLock:
    def test_a_second_evaluator_is_kept_out_and_told_by_whom(self, root):
        first = folder_at(root)
        first.prepare()

        with pytest.raises(OutputError, match=rf"another evaluator is writing to it \(pid {os.getpid()} on "):
            folder_at(root).prepare()
        first.release()

    def test_after_its_release_another_one_may_come(self, root):
        first, second = folder_at(root), folder_at(root)
        first.prepare()
        first.release()
        second.prepare()
        second.release()

    def test_a_crash_frees_it(self, root):
        code = (
            "import os, sys; from tests.test_output_folder import folder_at\n"
            "folder_at(sys.argv[1]).prepare(); os._exit(9)"
        )
        crashed = subprocess.run([sys.executable, "-c", code, str(root)], check=False, cwd=Path(__file__).parents[1])
        folder = folder_at(root)
        folder.prepare()
        folder.release()

        assert crashed.returncode == 9

    def test_a_link_in_its_place_is_not_followed(self, root, tmp_path):
        (tmp_path / "precious").write_text("text")
        root.mkdir()
        (root / ".lock").symlink_to(tmp_path / "precious")

        with pytest.raises(OutputError, match="cannot be written"):
            folder_at(root).prepare()
        assert (tmp_path / "precious").read_text() == "text"

    def test_a_lock_file_of_some_other_program_keeps_its_text(self, root):
        root.mkdir()
        (root / ".lock").write_text("theirs")
        folder = folder_at(root)
        folder.prepare()
        folder.release()

        assert (root / ".lock").read_text() == "theirs"


class TestFormer:
    def test_a_new_folder_has_no_former_job(self, root):
        assert folder_at(root).unfinished() is None

    def test_a_job_without_an_end_is_unfinished(self, root):
        write_status(root, make_rule("AllZero"))
        unfinished = folder_at(root).unfinished()

        assert unfinished is not None
        assert [rule.Rule for rule in unfinished.rules] == ["AllZero"]

    def test_a_job_with_an_end_is_finished(self, root):
        write_status(root, ended_at="2026-01-01T00:00:00.000Z")

        assert (folder_at(root).unfinished(), folder_at(root).former() is None) == (None, False)

    @pytest.mark.parametrize("data", [b"", b'{"schema": 1, "job"', b"[]", b'{"schema": 2}', b"\xff"])
    def test_a_status_that_cannot_be_understood_is_no_former_job(self, root, data):
        root.mkdir()
        (root / "status.json").write_bytes(data)

        assert folder_at(root).former() is None


class TestStartOver:
    def test_it_removes_what_the_former_job_wrote(self, root):
        write_status(root, make_rule("Vanishing gradient"), make_rule("Create", Report="Create/page.html"))
        write_finding(root / "Vanishing%20gradient" / "findings.jsonl")
        write_finding(root / "findings.jsonl")
        write_finding(root / "AllZero" / "findings.jsonl")
        (root / "Create").mkdir()
        (root / "Create" / "page.html").write_text("<p>")
        (root / "AllZero" / "traceback.txt").write_text("Traceback (most recent call last):")
        (root / "checkpoint").mkdir()
        (root / "checkpoint" / CHECKPOINT_MARK).write_text("{}")
        (root / "checkpoint" / "state.npz").write_text("")
        folder_at(root, ["AllZero"]).start_over()

        assert files(root) == []
        assert not (root / "checkpoint").exists()

    def test_it_removes_nothing_else(self, root):
        write_status(root, make_rule("AllZero"))
        write_finding(root / "AllZero" / "findings.jsonl")
        write_finding(root / "other_job" / "findings.jsonl")
        for key in [
            "notes.txt",
            "AllZero/mine.html",
            "AllZero/traceback.txt",
            "checkpoint/model.pt",
            "page.html",
            "findings.csv",
        ]:
            (root / key).parent.mkdir(exist_ok=True)
            (root / key).write_text("mine")
        removed = folder_at(root, ["AllZero"]).start_over()

        assert sorted(removed) == ["AllZero/findings.jsonl", "status.json"]
        assert files(root) == [
            *("AllZero/mine.html", "AllZero/traceback.txt", "checkpoint/model.pt", "findings.csv"),
            *("notes.txt", "other_job/findings.jsonl", "page.html"),
        ]

    def test_a_new_folder_has_nothing_to_remove(self, root):
        assert folder_at(root, ["AllZero"]).start_over() == []

    @pytest.mark.parametrize("key", ["status.json", "AllZero/findings.jsonl"])
    def test_a_file_of_somebody_else_is_neither_removed_nor_written_over(self, root, key):
        (root / key).parent.mkdir(parents=True)
        (root / key).write_text("theirs")

        with pytest.raises(OutputError, match="was not written by rule-evaluator; an output folder without"):
            folder_at(root, ["AllZero"]).start_over()
        assert (root / key).read_text() == "theirs"

    @pytest.mark.parametrize("data", ["", '{\n  "schema": 1,\n  "tri'])
    def test_a_status_that_was_cut_off_is_still_ours(self, root, data):
        root.mkdir()
        (root / "status.json").write_text(data)

        assert folder_at(root).start_over() == ["status.json"]

    @pytest.mark.parametrize(
        "report",
        ["../precious.html", "{outside}/precious.html", "a/../../precious.html", "link/precious.html", "\0.html"],
    )
    def test_a_status_cannot_have_files_elsewhere_removed(self, root, tmp_path, report):
        (tmp_path / "precious.html").write_text("text")
        write_status(root, make_rule("AllZero", Report=report.format(outside=tmp_path)))
        (root / "link").symlink_to(tmp_path)
        folder_at(root).start_over()

        assert (tmp_path / "precious.html").read_text() == "text"

    def test_links_are_left_alone(self, root, tmp_path):
        write_finding(tmp_path / "elsewhere" / "findings.jsonl")
        root.mkdir()
        (root / "AllZero").symlink_to(tmp_path / "elsewhere")
        (root / "findings.jsonl").symlink_to(tmp_path / "elsewhere" / "findings.jsonl")

        assert folder_at(root, ["AllZero", ""]).start_over() == []
        assert (tmp_path / "elsewhere" / "findings.jsonl").exists()
