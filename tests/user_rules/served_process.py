"""Starts Python with the served modules on its path, so that no `smdebug` gets into the tests' own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from evaluator.user_rules import served_path

ROOT = Path(__file__).parents[2]


def run_served(*arguments: str) -> str:
    """The standard output of `python ARGUMENTS`."""
    path = os.pathsep.join([str(ROOT), served_path()])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0"}
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
