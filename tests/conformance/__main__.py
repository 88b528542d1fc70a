# ruff: noqa: T201 - a program that prints a table
"""Runs the same calls through smdebug 1.0.34 and through the served API, and compares.

    python -m tests.conformance [--peer PYTHON] [--write docs/smdebug-compatibility.md]

Without `--peer` a venv with smdebug is made in `.conformance/` the first time. Exits with 1 when something differs
that is not listed in differences.py, or is listed there and does not differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaluator.user_rules import served_path
from tests.conformance.data import build_all
from tests.conformance.differences import NOT_COMPARED, PURPOSE, reason

ROOT = Path(__file__).parents[2]
PROBES = Path(__file__).with_name("probes.py")
PEER = ("smdebug==1.0.34", "protobuf<=3.20.3", "numpy<2", "pandas<2.2", "bokeh<3", "requests", "psutil")
BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
ENVIRONMENT = {
    # quiet and quick: no pause at the end of a trial, and two seconds for a missing event file
    "SMDEBUG_LOG_LEVEL": "critical",
    "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0",
    "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT": "1",
    "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": "SIGNAL",
    "PYTHONDONTWRITEBYTECODE": "1",
}
Results = dict[str, dict[str, Any]]


def peer_python() -> str:
    """The Python of a venv with the reference, made when it is not there."""
    folder = ROOT / ".conformance"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making {folder} with {PEER[0]}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEER], check=True)
        (folder / "complete").touch()
    return str(python)


def run(python: str, data: Path, result: Path, path: Iterable[str]) -> Results:
    """What the probes got in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "SMDEBUG_"))}
    environment |= ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(path)}
    command = [python, "-W", "ignore", str(PROBES), str(data), str(result)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    found: Results = json.loads(result.read_text(encoding="utf-8"))
    return found


def same(theirs: Any, ours: Any) -> bool:
    """Whether two results agree; an exception may be a subclass, with the same text."""
    if theirs == ours:
        return True
    both = isinstance(theirs, dict) and isinstance(ours, dict) and "raises" in theirs and "raises" in ours
    return both and theirs["raises"] in ours["is"] and theirs["text"] == ours["text"]


def compare(theirs: Results, ours: Results) -> tuple[dict[str, list[int]], list[str]]:
    """Per case how many calls agree, differ on purpose and differ; and what is not explained."""
    counts: dict[str, list[int]] = {}
    unexplained = []
    used = set()
    for case in dict.fromkeys([*theirs, *ours]):
        count = counts[case] = [0, 0, 0]
        for call in dict.fromkeys([*theirs.get(case, {}), *ours.get(case, {})]):
            one, other = (found.get(case, {}).get(call, "not asked") for found in (theirs, ours))
            why = reason(case, call)
            if same(one, other):
                count[0] += 1
            elif why is not None:
                used.add((case, why))
                count[1] += 1
            else:
                count[2] += 1
                unexplained.append(f"{case}: {call}\n    smdebug: {_short(one)}\n    ours:    {_short(other)}")
    listed = {(case, why) for case, _, why in PURPOSE}
    unexplained += [f"{case}: listed as different, but nothing is: {why}" for case, why in sorted(listed - used)]
    return counts, unexplained


def page(counts: dict[str, list[int]]) -> list[str]:
    """The table, as Markdown."""
    whole = [sum(column) for column in zip(*counts.values(), strict=True)]
    lines = ["| case | agreed | differs on purpose | differs |", "|---|---|---|---|"]
    lines += [f"| `{case}` | {a} | {b or ''} | {c or ''} |" for case, (a, b, c) in counts.items()]
    lines += [f"| all | {whole[0]} | {whole[1]} | {whole[2]} |", "", "What differs on purpose:", ""]
    lines += [f"- `{case}`: {why}" for case, why in dict.fromkeys((case, why) for case, _, why in PURPOSE)]
    lines += ["", "What of conformance.md is not compared, and why:", ""]
    lines += [f"- {what}: {why}." for what, why in NOT_COMPARED]
    return lines


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else f"{text[:300]} ..."


def main() -> int:
    """Compare, print, and perhaps write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", help="the Python of a venv with smdebug 1.0.34")
    parser.add_argument("--write", type=Path, help="the page whose table is made anew")
    options = parser.parse_args()
    python = options.peer or peer_python()
    places = [ROOT.parent / "shared" / "trials", ROOT / "tests" / "data" / "trials"]
    shared = [path for place in places if place.is_dir() for path in sorted(place.iterdir()) if path.is_dir()]
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        work = Path(folder)
        build_all(work / "theirs", shared)
        shutil.copytree(work / "theirs", work / "ours")
        theirs = run(python, work / "theirs", work / "theirs.json", ())
        ours = run(sys.executable, work / "ours", work / "ours.json", (str(ROOT), served_path()))
    counts, unexplained = compare(theirs, ours)
    lines = page(counts)
    print("\n".join(lines))
    if not any("shared" in str(path) for path in shared):
        print("\n../shared/trials is not there: only the trials of tests/data were compared")
    for line in unexplained:
        print(f"\nnot explained: {line}")
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        options.write.write_text(
            f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}", encoding="utf-8"
        )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
