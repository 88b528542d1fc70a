"""Patterns of somebody else: the same answers as `re.search`, and never for long."""

from __future__ import annotations

import json
import re
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.formats.collection_file import SavedCollection
from evaluator.needs import Selection
from evaluator.sources.base import Collections
from evaluator.trial import names
from evaluator.trial.names import NameBook
from evaluator.trial.patterns import MOST_DROPPED, SECONDS, Patterns

ROOT = Path(__file__).parents[2]
SAVED = {
    pattern
    for path in (ROOT / "tests/data/trials").rglob("*_collections.json")
    for collection in json.loads(path.read_text("utf-8"))["collections"].values()
    for pattern in collection["include_regex"] or []
}
HOOKS = [
    *sorted(SAVED),
    # Source: saved-format.md, section 2, and the collections that builtin-rules.md shows
    "[Ll]oss_(?!input).*output", "^(?!gradient).*weight", "^gradient/", "gradient", ".*relu_output", ".*relu_input",
    ".*labels|.*predictions", ".*hybridsequential0_input_0", "bias", "^(?!gradient).*bias", ".*_input_", ".*_output_",
    "^(train|valid)", "feature_importance/", "average_shap/.+[^/bias]", "(?i)Loss$", "a|b", r"\bkernel:0$",
    "5", "", "^$",
]  # fmt: skip
NAMES = [
    "loss", "CrossEntropyLoss_output_0", "Loss_input_0", "gradient/conv0.weight", "conv0.weight", "conv0.bias",
    "gradient/conv0.bias", "layer/relu_output_0", "relu_input_1", "average_shap/f1", "average_shap/f1/bias", "",
    "hybridsequential0_input_0", "train-rmse", "labels", "a\nb", "größe", "kernel:0", "x" * 2000,
]  # fmt: skip
SLOW = "^(a|a)*$"
LONG = "a" * 40 + "!"


@pytest.mark.parametrize("pattern", HOOKS)
def test_patterns_of_hooks_find_what_re_finds(pattern: str):
    patterns = Patterns()

    assert [patterns.found(pattern, name) for name in NAMES] == [bool(re.search(pattern, name)) for name in NAMES]
    assert patterns.dropped == {}


@pytest.mark.parametrize("pattern", ["a{e<=1}", "a{e}", r"a\{e<=1}", "a{1,2}", "a{,2}b", "[[:alpha:]]", "x{", "[{e}]"])
def test_what_only_the_other_package_understands_means_what_it_means_for_re(pattern: str):
    texts = ["a", "b", "a{e<=1}", "a{e}", "aab", "x{", ":]", "alpha", "{", "e"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [bool(re.search(pattern, text)) for text in texts]
    assert [Patterns().found(pattern, text) for text in texts] == expected


@given(st.text("ab|()[]^$.*+?{}1,\\-_/", max_size=8), st.text("ab1_/", max_size=8))
def test_short_patterns_of_any_kind_find_what_re_finds(pattern: str, name: str):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = bool(re.search(pattern, name))
    except re.error:
        return

    assert Patterns().found(pattern, name) == expected


def test_a_pattern_that_takes_too_long_is_dropped():
    """`^(a+)+$` in a collections file, and a name of forty letters a, hung the job."""
    patterns = Patterns()
    started = time.monotonic()
    first, second = patterns.found(SLOW, LONG), patterns.found(SLOW, "a")

    assert (first, second, list(patterns.dropped)) == (False, False, [SLOW])
    assert time.monotonic() - started < 50 * SECONDS


def test_a_file_full_of_slow_patterns_is_given_up():
    patterns = Patterns()
    slow = [f"^(a|a){{{number},}}$" for number in range(3 * MOST_DROPPED)]
    known = patterns.found("loss", "loss")
    for pattern in slow:
        patterns.found(pattern, LONG)

    assert (known, len(patterns.dropped), len(patterns.untried)) == (True, MOST_DROPPED, 2 * MOST_DROPPED)
    assert (patterns.found("loss", "loss"), patterns.found("new", "new")) == (True, False)


def test_a_slow_pattern_of_a_collection_selects_nothing_and_is_named():
    book = NameBook()
    book.see([LONG, "loss"])
    saved = SavedCollection("gradients", (SLOW,), ("loss",))
    book.collections = Collections(by_name={"gradients": saved})

    assert book.selected(Selection(collections=("gradients",))) == ["loss"]
    assert list(book.problems) == ["pattern '^(a|a)*$'"]


def test_answers_are_bounded_for_a_run_that_keeps_inventing_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names, "MOST_ANSWERS", 100)
    book = NameBook()
    selection = Selection(regexes=("7$",))
    found = [name for name in map(str, range(1000)) if book.selects(selection, name)]

    assert (len(found), sum(map(len, book._answers.values())) <= 100) == (100, True)
