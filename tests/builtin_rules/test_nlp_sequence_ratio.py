"""NLPSequenceRatio: how much of a batch is padding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge, mistakes

RULE, NAME = "NLPSequenceRatio", "embedding0_input_0"
TWO_TOKENS = {"token_values": "0, 1"}


def slow_percent(batch: np.ndarray, token: float) -> float:
    values = batch.reshape(-1).tolist()
    return 100 * sum(1 for value in values if value == token) / len(values)


def test_parameters_are_sagemakers():
    assert defaults(RULE) == {
        "tensor_regex": (".*embedding0_input_0",),
        "token_values": (0.0,),
        "token_thresholds_percent": (50.0,),
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_it_agrees_with_the_slow_way(seed: int, kind: type):
    generator = np.random.default_rng(seed)
    batches: list[np.ndarray] = [generator.integers(0, 4, (3, 5)).astype(kind) for _ in range(8)]
    thresholds = {0: 45, 2: 40}
    expected = next(
        (
            step
            for step, batch in enumerate(batches)
            if any(slow_percent(batch, token) > limit for token, limit in thresholds.items())
        ),
        None,
    )

    result = judge(RULE, {NAME: batches}, parameters={"token_values": "0, 2", "token_thresholds_percent": "45, 40"})

    assert result.met_at == expected
    if expected is not None:
        finding = result.findings[0]
        assert finding.limit == thresholds[int(finding.details["token"])]
        assert finding.measured == pytest.approx(slow_percent(batches[expected], finding.details["token"]))


def test_exactly_half_is_quiet():
    assert judge(RULE, {NAME: [np.array([[0, 1], [0, 2]])]}).word == "NoIssuesFound"


def test_one_threshold_each():
    (mistake,) = mistakes(RULE, **TWO_TOKENS)

    assert "2 tokens and 1 thresholds are given" in mistake


def test_steps_are_judged_by_themselves():
    empty, full = np.zeros((2, 4), np.int64), np.ones((2, 4), np.int64)

    assert judge(RULE, {NAME: [full, full, full, empty]}).met_at == 3


@pytest.mark.parametrize(
    ("name", "fires"),
    [
        ("embedding0_input_0", True),
        ("embedding7_input_0", True),
        ("bert.embeddings.word_embeddings_input_0", True),
        ("model.embed_tokens_input_0", True),
        ("transformer.wte_input_0", True),
        ("embedding/inputs", True),
        ("bert.embeddings.token_type_embeddings_input_0", False),
        ("bert.embeddings.position_embeddings_input_0", False),
        ("segment_embedding_input_0", False),
        ("embedding0_output_0", False),
        ("dense_input_0", False),
    ],
)
def test_names_that_are_meant_when_recommended(name: str, fires: bool):
    result = judge(RULE, {name: [np.zeros((2, 8), np.int64)]}, parameter_set="recommended")

    assert (result.met_at == 0) is fires


def test_a_category_is_no_sequence_when_recommended():
    for shape in ((64,), (64, 1)):
        result = judge(RULE, {NAME: [np.zeros(shape, np.int64)]}, parameter_set="recommended")

        assert "no samples of 4 tokens" in result.why
