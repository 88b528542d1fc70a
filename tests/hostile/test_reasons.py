"""Why a rule was not evaluated is said in few words, however many names a run holds, and also for names without any."""

from __future__ import annotations

import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.testing import ExampleResult, FakeClock, evaluate
from tests.saved_run import SavedRun


def judged(run: SavedRun, rule: str = "VanishingGradient") -> ExampleResult:
    configuration = configure(RuleRequest(rule, {}, "command line", rule), builtin_rules()[rule])
    assert isinstance(configuration, RuleConfiguration)
    return evaluate(SmdebugFolder(run.store), [configuration])


@pytest.mark.parametrize("name", ["", "..", "\x1b", "特徴", "x" * 16_000])
def test_a_tensor_name_without_a_word_ends_no_job(name: str):
    """A name that is empty ended the job with a ValueError, at its end."""
    run = SavedRun(FakeClock())
    run.announce()
    run.save(0, values={"loss": 1.0})
    key = next(entry.key for entry in run.store.list("index/"))
    run.store.write(
        key, run.store.read(key).replace(b'"loss"', f'"{name}"'.encode() if name != "\x1b" else b'"\\u001b"')
    )

    result = judged(run)

    assert result.word == "Error"
    assert "no tensor of collection 'gradients'" in result.why


def test_of_very_many_collections_some_are_listed():
    """Each rule's reason held the names of all collections: a file of 30 MB made a status of a gigabyte."""
    run = SavedRun(FakeClock())
    run.announce(**{f"c{number}": ["loss"] for number in range(3000)})
    run.save(0, values={"loss": 1.0})

    result = judged(run)

    assert "c0, c1, " in result.why
    assert result.why.endswith(", ...")
    assert len(result.why) < 1000
