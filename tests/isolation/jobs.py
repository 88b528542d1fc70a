"""Runs jobs with rules of users' files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.config.parameters import configure_file
from evaluator.config.request import RuleFile, RuleRequest, Shape
from evaluator.job import Job, Result
from evaluator.status import RuleStatus
from evaluator.testing import trial_from_series

FILES = Path(__file__).parent / "rule_files"


@dataclasses.dataclass(frozen=True)
class Asked:
    """A rule of a file, as it is asked for."""

    file: str | Path
    name: str | None = None
    parameters: Mapping[str, object] = dataclasses.field(default_factory=dict)
    shape: Shape = "command line"


def saved(folder: Path, steps: int = 6, tensors: Mapping[str, Sequence[object]] | None = None) -> Path:
    """A small run with gradients, beside which a built-in rule has something to judge too."""
    series = tensors or {"gradient/w": [float(step + 1) for step in range(steps)]}
    trial_from_series(folder, series, collections={"gradients": list(series)})
    return folder


def run_job(
    trial: Path, output: Path, asked: Sequence[Asked], builtin: Sequence[str] = (), settings: Sequence[str] = ()
) -> Result:
    """Run these rules over the trial as it stands."""
    arguments = Arguments(
        trial=str(trial), rules=list(builtin) or ["AllZero"], output=str(output), set=["user_memory=1GiB", *settings]
    )
    config = load(arguments, {})
    rules = []
    for one in asked:
        path = str(FILES / one.file)
        request = RuleRequest(
            one.name or Path(path).stem, one.parameters, one.shape, "--rule-file", None, RuleFile(path, one.name)
        )
        configured = configure_file(request)
        assert not isinstance(configured, list), configured
        rules.append(configured)
    config = dataclasses.replace(config, rules=(*(config.rules if builtin else ()), *rules))
    return Job(config, SystemClock()).run()


def rule(result: Result, name: str) -> RuleStatus:
    """The status of one configuration."""
    return next(one for one in result.status.rules if one.RuleConfigurationName == name)


def place(file: str, line: str) -> str:
    """Where a line stands in one of the files, as messages say it."""
    lines = (FILES / file).read_text().splitlines()
    return f"({file}, line {1 + next(at for at, text in enumerate(lines) if text.strip() == line)})"
