"""The reference in a process of its own, warm and waiting for requests, or started anew for one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.speed.ours import Judged

SCRIPT = Path(__file__).parents[1] / "peer" / "timed.py"


class Reference:
    """smdebug in its own venv."""

    def __init__(self, python: str, settings: dict[str, str]) -> None:
        """Start it; `settings` are its environment variables."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "SMDEBUG_", "PYTHON"))}
        self._environment = kept | settings
        self._command = [python, "-W", "ignore", str(SCRIPT)]
        self._process = subprocess.Popen(  # noqa: S603 - the Python that was asked for
            self._command, env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.version = str(self.ask(do="version")["version"])

    def __enter__(self) -> Self:
        """The process itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def ask(self, **request: Any) -> Any:
        """Have the warm process do something."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{SCRIPT.name}: ended without an answer to {request}; try it by hand")
        return json.loads(line)

    def judge(self, trial: Path, threshold: float) -> Judged:
        """A whole trial in the warm process."""
        return _judged(self.ask(do="judge", trial=str(trial), threshold=str(threshold)))

    def judge_process(self, trial: Path, threshold: float) -> Judged:
        """The same in a new process, its start and end included."""
        request = json.dumps({"do": "judge", "trial": str(trial), "threshold": str(threshold)})
        begin = time.perf_counter()
        ran = subprocess.run(  # noqa: S603 - the same
            [*self._command, request], check=True, env=self._environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        return _judged({**json.loads(ran.stdout), "seconds": seconds})


def _judged(answer: dict[str, Any]) -> Judged:
    return Judged(answer["seconds"], answer["judged"], [(step, name, value) for step, name, value in answer["met"]])
