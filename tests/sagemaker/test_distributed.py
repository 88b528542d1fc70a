"""What Debugger supports in distributed training: every row of the guide's lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from evaluator.errors import Mistake
from evaluator.sagemaker.distributed import FRAMEWORKS, KNOWN_ERROR, MATRIX, STRATEGIES, canonical, support_of
from tests.commands.program import call

SEED = Path(__file__).parents[3] / "shared/seeds/debugger-references.de.txt"
SECOND_SEED = SEED.with_name("distributed-training-troubleshooting.de.txt")

# strategy, framework, system bottlenecks, framework profiling, output tensors
ROWS = [
    ("horovod", "mxnet", True, False, True),
    ("horovod", "tensorflow-1", True, False, True),
    ("horovod", "tensorflow-2", True, False, True),
    ("horovod", "keras", True, True, True),
    ("horovod", "pytorch", True, True, True),
    ("data-parallel", "tensorflow-2", True, False, True),
    ("data-parallel", "keras", True, False, True),
    ("data-parallel", "pytorch", True, True, True),
    *[("model-parallel", framework, False, False, False) for framework in FRAMEWORKS],
    *[("parameter-server", framework, False, False, False) for framework in FRAMEWORKS],
]


@pytest.mark.parametrize(("strategy", "framework", "bottlenecks", "profiling", "tensors"), ROWS)
def test_a_row_of_the_matrix(capsys, strategy, framework, bottlenecks, profiling, tensors):
    ran = call(capsys, "support", "--strategy", strategy, "--framework", framework, "--json")

    [row] = ran.document["combinations"]
    assert (row["system_bottlenecks"], row["framework_profiling"], row["output_tensors"]) == (
        bottlenecks,
        profiling,
        tensors,
    )
    assert ran.document["supported"] is tensors
    assert ran.code == (0 if tensors else 1)


@pytest.mark.parametrize(("strategy", "framework", "bottlenecks", "profiling", "tensors"), ROWS)
def test_what_does_not_work_has_a_reason_and_what_works_has_none(strategy, framework, bottlenecks, profiling, tensors):
    [row] = support_of(framework, strategy)

    assert bool(row.why) is not (bottlenecks and profiling and tensors)


@pytest.mark.parametrize(("strategy", "framework", "bottlenecks", "profiling", "tensors"), ROWS)
def test_with_checkpoints_nothing_of_distributed_training_is_supported(
    capsys, strategy, framework, bottlenecks, profiling, tensors
):
    ran = call(capsys, "support", "--strategy", strategy, "--framework", framework, "--checkpoints", "--json")

    [row] = ran.document["combinations"]
    assert (ran.code, ran.document["supported"]) == (1, False)
    assert not row["system_bottlenecks"]
    # where nothing worked before, checkpoints are not the reason
    assert any(KNOWN_ERROR in reason for reason in row["reasons"]) is tensors


def words(page: Path) -> str:
    """The text of a page, with one kind of blank."""
    return page.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def page_rows(title: str) -> list[tuple[str, tuple[bool, ...]]]:
    """One list of the page: framework, and yes or no for each of the three features."""
    part = words(SEED).split(f"  • {title}\n", 1)[1].split("\n  • ", 1)[0]
    head = next(line for line in part.splitlines() if "Deep-Learning-Framework" in line)
    lines = [line for line in part.splitlines() if re.search(r"\b(Ja|Nein)\b", line)]
    features = [tuple(word == "Ja" for word in re.findall(r"\b(Ja|Nein)\b", line)) for line in lines[:3]]
    # the page is in German
    names = {title.replace(" with ", " mit "): title for title in FRAMEWORKS.values()}
    longest_first = sorted(names, key=len, reverse=True)
    found = [names[one] for one in re.findall("|".join(map(re.escape, longest_first)), head)]
    assert [len(one) for one in features] == [len(found)] * 3
    return list(zip(found, zip(*features, strict=True), strict=True))


@pytest.mark.skipif(not SEED.exists(), reason="the guide's page is not here")
@pytest.mark.parametrize(
    ("strategy", "title"), [("horovod", "Horovod"), ("data-parallel", "SageMaker AI Distributed Data Parallel")]
)
def test_the_matrix_is_that_of_the_page(strategy: str, title: str):
    ours = [
        (FRAMEWORKS[row.framework], (row.bottlenecks, row.profiling, row.tensors))
        for row in MATRIX
        if row.strategy == strategy and row.framework is not None
    ]

    assert ours == page_rows(title)


@pytest.mark.skipif(not SECOND_SEED.exists(), reason="the guide's pages are not here")
@pytest.mark.parametrize("page", [SEED, SECOND_SEED], ids=["references", "troubleshooting"])
def test_the_known_error_is_that_of_the_pages(page: Path):
    assert KNOWN_ERROR in [line.strip() for line in words(page).splitlines()]


def test_what_the_lists_do_not_have_is_no_verdict(capsys):
    ran = call(capsys, "support", "--strategy", "data-parallel", "--framework", "mxnet", "--json")

    assert (ran.code, ran.document["supported"], ran.document["combinations"]) == (3, None, [])


def test_the_whole_table_is_no_verdict_either(capsys):
    ran = call(capsys, "support")

    assert ran.code == 0
    assert all(title in ran.out for title in [*FRAMEWORKS.values(), *STRATEGIES.values()])


@pytest.mark.parametrize("strategy", ["model-parallel", "parameter-server"])
def test_what_no_framework_supports_needs_no_framework(capsys, strategy: str):
    ran = call(capsys, "support", "--strategy", strategy)

    assert ran.code == 1
    assert "with any framework: not supported" in ran.out


def test_one_framework_is_a_smaller_table(capsys):
    ran = call(capsys, "support", "--framework", "pytorch")

    assert ran.code == 0
    assert "PyTorch" in ran.out
    assert "MXNet" not in ran.out


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("SMDDP", STRATEGIES, "data-parallel"),
        ("parameter_server", STRATEGIES, "parameter-server"),
        ("SageMaker distributed model parallel", STRATEGIES, "model-parallel"),
        ("Apache MXNet", FRAMEWORKS, "mxnet"),
        ("tf1", FRAMEWORKS, "tensorflow-1"),
        ("torch", FRAMEWORKS, "pytorch"),
    ],
)
def test_other_words_mean_the_same(word: str, known: dict[str, str], meant: str):
    assert canonical(word, known, "") == meant


@pytest.mark.parametrize(("word", "known"), [("horovod", FRAMEWORKS), ("pytorch", STRATEGIES), ("jax", FRAMEWORKS)])
def test_a_word_of_something_else_is_a_mistake(word: str, known: dict[str, str]):
    assert isinstance(canonical(word, known, ""), Mistake)


def test_all_wrong_words_are_said_at_once(capsys):
    ran = call(capsys, "support", "--framework", "pytroch", "--strategy", "horovd")

    assert ran.code == 2
    assert ran.err.splitlines() == [
        f"--framework: 'pytroch' is not in the support matrix; did you mean 'pytorch'? known: {known(FRAMEWORKS)}",
        f"--strategy: 'horovd' is not in the support matrix; did you mean 'horovod'? known: {known(STRATEGIES)}",
    ]


def known(names: Iterable[str]) -> str:
    """All of them, as messages list them."""
    return ", ".join(sorted(names))
