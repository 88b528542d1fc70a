"""Names that a training job chose act nowhere: not on a terminal, not as markup, not in a log line, not in a page."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.formats.key_names import event_key, index_key
from evaluator.logs import printable
from evaluator.modes import Mode
from evaluator.writer import TrialWriter
from tests.commands.program import check_outputs

CONTROL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\x00\u202e\u2028\x7f"
MARKUP = "[red]x[/red] :smile: [link=http://evil]"
HTML = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> &amp; {{ 7 * 7 }}"
NAMES = [CONTROL, MARKUP, HTML, "gradient/\udcff".encode("utf-8", "surrogateescape").decode("utf-8", "replace")]
COMMANDS = [("run",), ("run", "--json"), ("check",), ("check", "--json"), ("show",), ("show", "--json")]
RULES = ("--rule", "VanishingGradient:parameter_set=sagemaker", "--rule", "NonFinite", "--rule", "LossSpike")
ROOT = Path(__file__).parents[2]

# what a terminal is told by the program itself: colours, and the live line that it takes away again
OURS = ("\x1b[0m", "\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial in which tensors, workers and collections have such names, and rules find something."""
    folder = tmp_path_factory.mktemp("names") / "trial"
    files = [name.replace("/", "|").replace("\0", "") for name in NAMES]
    for worker in ("worker_0", *files):
        collections = dict.fromkeys((*NAMES, "gradients", "losses", "weights"), NAMES)
        writer = TrialWriter(folder, worker=worker, num_workers=len(files) + 1, collections=collections)
        for step in range(4):
            values = {name: np.full(3, 1e-12, np.float32) for name in NAMES}
            writer.save(step, {**values, "train-rmse": np.float32(1)}, mode=Mode.TRAIN, wall_time=float(step))
        # a file that cannot be read, under such a name
        (folder / index_key(2, worker)).write_text(json.dumps({"meta": {"mode": CONTROL + MARKUP}}))
        (folder / event_key(3, worker)).unlink()
    (folder / "index" / "000000000" / f"link{CONTROL.replace(chr(0), '')}").symlink_to("/etc/hostname")
    (folder / "training_job_end.ts").touch()
    return folder


def arguments(trial: Path, output: Path, command: Sequence[str]) -> list[str]:
    name, *options = command
    output_too = ["--output", str(output), *RULES] if name == "run" else []
    return [name, str(trial), *options, *output_too]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_lets_a_name_act_in_a_pipe(trial: Path, tmp_path: Path, command: Sequence[str]):
    ran = subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments(trial, tmp_path / "out", command)],
        capture_output=True, check=False, timeout=100, cwd=ROOT, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    out, err = (stream.decode() for stream in (ran.stdout, ran.stderr))

    assert ran.returncode in (0, 1), err
    assert all(line.isprintable() or printable(line) == line for line in (out + err).split("\n"))
    assert "[red]x" in out
    assert "owned" in out


def test_no_name_acts_on_a_terminal(trial: Path, tmp_path: Path):
    """What rich writes to a terminal are its own sequences and no others."""
    shown = io.BytesIO()

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 2**16)
        shown.write(data)
        return data

    command = [sys.executable, "-m", "evaluator", *arguments(trial, tmp_path / "out", ["run"])]
    code = (
        "import os, sys; os.environ.update(TERM='xterm', COLUMNS='200'); "
        f"os.chdir({str(ROOT)!r}); os.execv({sys.executable!r}, {command!r})"
    )
    read_end, write_end = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=write_end, stdout=write_end, stderr=write_end)
    os.close(write_end)
    try:
        while read(read_end):
            pass
    except OSError:  # how a terminal ends on Linux
        pass
    finally:
        os.close(read_end)
        process.wait(timeout=100)
    text = shown.getvalue().decode()
    for ours in OURS:
        text = text.replace(ours, "")

    assert process.returncode == 1
    assert "\\x1b[2J" in text
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert not set(text) & set("\x00\x07\x7f\x9b\u202e\u2028")


def test_the_outputs_of_a_job_hold_the_names_and_let_none_act(trial: Path, tmp_path: Path):
    output = tmp_path / "out"
    subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments(trial, output, ["run"])],
        check=False, capture_output=True, cwd=ROOT, timeout=100,
    )  # fmt: skip
    status = check_outputs(output)
    written = "".join(path.read_bytes().decode() for path in output.rglob("*") if path.is_file())
    found: list[dict[str, Any]] = [
        json.loads(line)
        for path in output.rglob("findings.jsonl")
        for line in path.read_text("utf-8").split("\n")
        if line
    ]

    assert all(printable(line) == line for line in written.split("\n"))
    assert {one["tensor"] for one in found} == {CONTROL}
    assert any("index/000000000" in note and "\x1b" in note for note in status["job"]["notes"])
    assert all(path.resolve().is_relative_to(output.resolve()) for path in output.rglob("*"))


def test_the_report_page_shows_names_as_text(tmp_path: Path):
    feature = f"feature_importance/weight/{HTML}"
    with TrialWriter(tmp_path / "trial", collections={"losses": [f"train-{HTML}"]}) as writer:
        for step in range(3):
            values = {
                feature: np.float32(1),
                f"train-{HTML}": np.float32(1),
                "labels": np.ones(4),
                "predictions": np.ones(4),
            }
            writer.save(step, values)
    output = tmp_path / "out"
    job = ["run", str(tmp_path / "trial"), "--rule", "CreateXgboostReport", "--output", str(output)]
    subprocess.run([sys.executable, "-m", "evaluator", *job], check=False, capture_output=True, cwd=ROOT, timeout=100)
    (page,) = output.rglob("*.html")
    text = page.read_text("utf-8")

    assert "&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "<img src=x" not in text
