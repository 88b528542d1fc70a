"""Fires when too large a share of the tokens of some batch is one token, as of padding.

At each saved step, compares the percentage of elements that are a token of `token_values` with its threshold in
`token_thresholds_percent`, for every tensor with a matching name.

Quiet when: no token has a larger share; or, with `min_length`, samples are too short to be sequences.
Source: SageMaker Debugger's list of built-in rules, "NLPSequenceRatio". Strictly above the threshold, per step and of
all elements of the tensor: our choice, see `token_percent`.
"""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from builtin_rules._selecting import Patterns
from evaluator.rule import (
    Example,
    Measure,
    NotYet,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    Summary,
    Verdict,
    Window,
)
from evaluator.segments import Floats, Segments


class Parameters(RuleParameters):
    """What NLPSequenceRatio can be told."""

    tensor_regex: Patterns = Field(
        (".*embedding0_input_0",), description="Looks at the tensors in whose name one of these patterns is found."
    )
    token_values: tuple[float, ...] = Field((0.0,), min_length=1, description="The tokens whose share is limited.")
    token_thresholds_percent: tuple[float, ...] = Field(
        (50.0,), min_length=1, description="Fires above this percentage of a token; one for each of the tokens."
    )
    min_length: int = Field(1, ge=1, description="Samples of fewer tokens are not judged. Ours, not SageMaker's.")

    @model_validator(mode="after")
    def _one_threshold_each(self) -> Self:
        tokens, thresholds = len(self.token_values), len(self.token_thresholds_percent)
        if tokens != thresholds:
            right = "as many in 'token_thresholds_percent' as in 'token_values'"
            raise ValueError(f"{tokens} tokens and {thresholds} thresholds are given; {right}")
        return self


def token_percent(segments: Segments, *, tokens: tuple[float, ...]) -> Floats:
    """(tensors, 1 + tokens): the length of a sample, then the percentage of elements that are each token.

    Our choice: of all elements of the tensor at one step, whatever its shape; the first axis is the batch.
    """
    lengths = [shape[-1] if len(shape) > 1 else 1 for shape in segments.shapes]
    shares = [100.0 * segments.mean(segments.flat == token) for token in tokens]
    return np.stack([np.array(lengths, np.float64), *shares], axis=1)


def needs(parameters: Parameters) -> list[Summary]:
    """The share of each token."""
    tokens = parameters.token_values
    measure = Measure(token_percent, (("tokens", tokens),), width=1 + len(tokens), kinds="fiu")
    return [Summary(Selection(regexes=parameters.tensor_regex), by=measure)]


def dominates(sequences: Window, parameters: Parameters) -> Verdict:
    """sequences: (1, columns, 1 + tokens), length of a sample, percentage of each token."""
    length, percent = sequences.values[-1, :, 0], sequences.values[-1, :, 1:]
    judged = sequences.saved[-1] & (length >= parameters.min_length)
    if not judged.any():
        return NotYet(f"no samples of {parameters.min_length} tokens or more were saved")
    limits = np.array(parameters.token_thresholds_percent)
    above = judged[:, None] & (percent > limits)
    met = above.any(axis=1)
    if not met.any():
        return None
    token = np.argmax(above, axis=1)
    return sequences.met(
        met,
        measured=percent[np.arange(len(token)), token],
        limit=limits[token],
        of=int(judged.sum()),
        message="{measured} % of all tokens are the same one, more than {limit} %, in {tensors} of {of} tensors",
        each={"token": np.array(parameters.token_values)[token]},
    )


MIXED = [[5, 7, 0, 3], [2, 4, 9, 0]]
PADDED = [[5, 0, 0, 0], [2, 4, 0, 0]]

RULE = Rule(
    name="NLPSequenceRatio",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=dominates,
    precedence=20,
    recommended={
        "tensor_regex": Recommended(
            (r"(?i)(embed[a-z]*|wte)(\d|_tokens)*(_input_0|/inputs?)$",),
            "modules are called embedding, word_embeddings, embed_tokens or wte, and numbered from anywhere",
        ),
        "exclude_regex": Recommended(
            r"(?i)(type|segment|position|pos)", "types and positions of tokens are mostly zero in healthy runs"
        ),
        "min_length": Recommended(4, "categories are embedded too, and one of them can be more usual than the others"),
    },
    examples=(
        Example("padding in most places", {"embedding0_input_0": [MIXED, PADDED]}, met_at=1),
        Example(
            "one token of two",
            {"embedding0_input_0": [MIXED, [[1, 1, 1, 0]]]},
            parameters={"token_values": "0, 1", "token_thresholds_percent": "50, 60"},
            met_at=1,
        ),
        Example("as decimal numbers", {"embedding0_input_0": [np.zeros((2, 8), np.float32)]}, met_at=0),
        Example("in another module", {"bert.embeddings.word_embeddings_input_0": [PADDED]}, met_at=0),
        Example("healthy", {"embedding0_input_0": [MIXED, MIXED]}),
        Example("exactly half", {"embedding0_input_0": [[[0, 0, 1, 2]]]}),
        Example("another token", {"embedding0_input_0": [[[7, 7, 7, 7]]]}),
        Example("types of tokens", {"bert.embeddings.token_type_embeddings_input_0": [np.zeros((4, 8), np.int64)]}),
        Example("categories, no sequence", {"country.embedding_input_0": [[0, 0, 0, 4]]}),
        Example("NaN is no token", {"embedding0_input_0": [np.full((2, 8), np.nan)]}),
        Example("unsaved, and empty", {"embedding0_input_0": [MIXED, None, np.zeros((0, 4), np.int64)]}),
    ),
)
