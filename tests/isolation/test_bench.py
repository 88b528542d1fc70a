"""A rule file in a process of its own where no job is at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.config.request import RuleFile
from evaluator.errors import InputError
from evaluator.isolation.bench import Bench
from evaluator.isolation.messages import Look
from evaluator.isolation.process import ProcessLimits

FILE = """
import os
from smdebug.rules.rule import Rule

with open(__file__ + ".imports", "a") as log:
    log.write(f"{os.getpid()}\\n")

class High(Rule):
    def invoke_at_step(self, step):
        value = self.base_trial.tensor("w").value(step)
        if value > 9:
            os.write(1, b"good-bye")
            os._exit(5)
        return value > 1

EXAMPLES = [
    {"title": "high", "tensors": {"w": [1, 2]}, "met_at": 1},
    {"title": "low", "tensors": {"w": [1, 1]}},
    {"title": "ends", "tensors": {"w": [1, 10]}},
]
"""


def bench(folder: Path, text: str = FILE, *, every: bool = True, name: str | None = None) -> Bench:
    file = folder / "mine.py"
    file.write_text(text)
    return Bench(Look(RuleFile(str(file), name), 2**30, every), ProcessLimits(30, 30))


def processes(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "mine.py.imports").read_text().split()]


def test_all_examples_of_a_file_are_run_in_one_process_that_is_gone_afterwards(tmp_path: Path):
    with bench(tmp_path) as one:
        (rule,) = one.introduce()
        outcomes = [one.try_example("High", number) for number in (0, 1, 0)]

    assert [example["title"] for example in rule["examples"]] == ["high", "low", "ends"]
    assert [(outcome["as_expected"], outcome["met_at"]) for outcome in outcomes] == [(True, 1), (True, None), (True, 1)]
    (process,) = processes(tmp_path)
    assert not Path(f"/proc/{process}").exists()


def test_after_an_example_that_ends_the_process_the_next_has_another(tmp_path: Path):
    with bench(tmp_path) as one:
        one.introduce()
        ended, after = one.try_example("High", 2), one.try_example("High", 1)

    assert ended["why"] == "its process ended by itself, with exit code 5"
    assert (ended["as_expected"], after["as_expected"]) == (False, True)
    assert len(set(processes(tmp_path))) == 2
    assert one.output == b"good-bye"


@pytest.mark.parametrize(
    ("text", "said", "failure"),
    [
        ("1 / 0", "mine.py: cannot be imported: ZeroDivisionError: division by zero (mine.py, line 1)", "    1 / 0\n"),
        ("import os\nos.write(2, b'no more')\nos._exit(6)", "its process ended by itself, with exit code 6", "no more"),
        ("x = 1", "mine.py: has no rule in it; ", ""),
    ],
)
def test_a_file_without_a_rule_says_why(tmp_path: Path, text: str, said: str, failure: str):
    with bench(tmp_path, text) as one, pytest.raises(InputError) as refused:
        one.introduce()

    assert said in str(refused.value)
    assert failure in one.failure


@pytest.mark.parametrize(
    ("every", "name", "found"), [(True, None, ["A", "B"]), (True, "B", ["B"]), (False, "A", ["A"])]
)
def test_the_rules_that_are_asked_for_are_told(tmp_path: Path, every: bool, name: str | None, found: list[str]):
    text = "from smdebug.rules import Rule\n"
    text += "".join(f"class {one}(Rule):\n    def invoke_at_step(self, step): return False\n" for one in "AB")

    with bench(tmp_path, text, every=every, name=name) as one:
        assert [rule["name"] for rule in one.introduce()] == found
