"""Fires when input images are not normalised: the mean of a channel is too far from zero.

Adds up the elements of each channel over all saved steps; once `threshold_samples` images were seen, compares the
magnitude of each channel's mean with `threshold_mean` at every step.

Quiet when: fewer images were seen; every mean is nearer to zero; a tensor holds NaN or infinite elements (see
ExplodingTensor); it has no axis `channel`; or, with `only_images`, it does not have the shape of images.
Source: SageMaker Debugger's list of built-in rules, "CheckInputImages" (strictly above `threshold_mean`). It speaks of
the mean; that each channel has its own is our choice, see `channel_sums`.
"""

from functools import partial

import numpy as np
from pydantic import Field

from builtin_rules._cells import added, faded
from builtin_rules._selecting import Patterns
from evaluator.rule import (
    Accumulator,
    Example,
    Measure,
    NotYet,
    Recommended,
    Row,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Tensor,
    Verdict,
    grown,
)
from evaluator.segments import Array, Floats

COLOURS = range(1, 5)
"""How many channels an image has: from grey to three colours and opacity."""


class Parameters(RuleParameters):
    """What CheckInputImages can be told."""

    threshold_mean: float = Field(0.2, ge=0, description="Fires when a mean is further from zero.")
    threshold_samples: int = Field(500, ge=1, description="Judges once so many images were seen.")
    regex: Patterns = Field(
        (".*hybridsequential0_input_0",),
        description="Looks at the tensors in whose name one of these patterns is found.",
    )
    channel: int = Field(1, ge=0, description="The axis of the colour channels.")
    only_images: bool = Field(
        False,
        description="Judges only tensors of four axes, of which `channel` or else the last one has 1 to 4 places. "
        "Ours, not SageMaker's.",
    )
    recent: bool = Field(
        False,
        description="Only about the last `threshold_samples` images count, those of each mode by themselves. "
        "Ours, not SageMaker's.",
    )


def channel_axis(shape: tuple[int, ...], channel: int, *, only_images: bool) -> int | None:
    """Which axis the channels are on; None for a tensor that is not judged.

    Our choice: where only images are wanted, an axis of 1 to 4 places is one of colours, and TensorFlow has it last.
    """
    if not only_images:
        return channel if channel < len(shape) else None
    axes = (axis for axis in (channel, len(shape) - 1) if axis < len(shape) and shape[axis] in COLOURS)
    return next(axes, None) if len(shape) == 4 else None


def channel_sums(images: Array, _: Tensor, *, channel: int, only_images: bool) -> Floats:
    """The number of images, of elements of a channel, and the sum of each channel; nothing where it is not judged.

    Our choice: each channel has a mean of its own; with one channel that is the mean of all.
    """
    axis = channel_axis(images.shape, channel, only_images=only_images)
    if axis is None:
        return np.zeros(0)
    others = tuple(other for other in range(images.ndim) if other != axis)
    sums = np.atleast_1d(np.sum(images, axis=others, dtype=np.float64))
    if not np.isfinite(sums).all():
        return np.zeros(0)
    return np.concatenate([[len(images), images.size / len(sums)], sums])


def start() -> dict[str, Array]:
    """No image was seen yet; keys are column, mode and channel, sums are of elements and their number."""
    return {"seen": np.zeros((0, 5)), "keys": np.zeros((0, 3), np.int64), "sums": np.zeros((0, 2))}


def add(state: dict[str, Array], row: Row, *, memory: int | None) -> dict[str, Array]:
    """The images seen of each column in each mode, and the sums of each channel."""
    seen = grown(state["seen"], len(row.values), 0).copy()
    keys, sums, images = [state["keys"][:0]], [state["sums"][:0]], [np.zeros(0)]
    for column in np.flatnonzero(row.saved).tolist():
        measured = row.values[column]
        if len(measured):
            mode = int(row.modes[column])
            channels = np.arange(len(measured) - 2)
            keys.append(np.stack([np.full_like(channels, column), np.full_like(channels, mode), channels], axis=1))
            sums.append(np.stack([measured[2:], np.full(len(channels), measured[1])], axis=1))
            images.append(np.where(channels == 0, measured[0], 0.0))
            seen[column, mode] += measured[0]
    more_keys, more_sums = np.concatenate(keys), np.concatenate(sums)
    old_keys, old_sums = state["keys"], state["sums"]
    if memory is not None:
        old_keys, old_sums = faded(old_keys, old_sums, more_keys, np.concatenate(images), 2, memory)
    all_keys, all_sums = added(old_keys, old_sums, more_keys, more_sums)
    return {"seen": seen, "keys": all_keys, "sums": all_sums}


def needs(parameters: Parameters) -> list[Summary]:
    """The sums of each channel, folded."""
    options = (("channel", parameters.channel), ("only_images", parameters.only_images))
    measure = Measure(channel_sums, options, ragged=True, each=True, kinds="fiub")
    fold = partial(add, memory=parameters.threshold_samples if parameters.recent else None)
    return [Summary(Selection(regexes=parameters.regex), by=measure, state=Accumulator(start, fold))]


def is_shifted(images: State, parameters: Parameters) -> Verdict:
    """images["seen"]: (columns, modes); keys: column, mode, channel; sums: of elements, and how many."""
    columns = len(images.columns)
    usable = np.array([saved and len(images.row.values[at]) > 0 for at, saved in enumerate(images.row.saved)])
    if not usable.any():
        return NotYet("no tensor of finite elements in the shape of images was saved")
    seen = grown(images["seen"], columns, 0)
    if parameters.recent:
        seen = np.where(np.arange(seen.shape[1]) == images.row.modes[:, None], seen, 0)
    judged = usable & (seen.sum(axis=1) >= parameters.threshold_samples)
    if not judged.any():
        most = int(seen.sum(axis=1).max())
        return NotYet(f"{most} of {parameters.threshold_samples} images were seen so far")
    mean, channel = furthest(images, columns, parameters)
    met = judged & (np.abs(mean) > parameters.threshold_mean)
    if not met.any():
        return None
    return images.met(
        met,
        measured=np.abs(mean),
        limit=parameters.threshold_mean,
        of=int(judged.sum()),
        message="a channel's mean is {measured} from zero, more than {limit}: the images are not normalised",
        each={"channel": channel, "mean": mean, "images": seen.sum(axis=1)},
    )


def furthest(images: State, columns: int, parameters: Parameters) -> tuple[Floats, Array]:
    """Per column the channel mean that is furthest from zero, and which channel it is of."""
    keys, sums = images["keys"], images["sums"]
    if parameters.recent:
        now = keys[:, 1] == images.row.modes[keys[:, 0]]
        keys, sums = keys[now], sums[now]
    keys, sums = added(keys[:0, [0, 2]], sums[:0], keys[:, [0, 2]], sums)
    means = sums[:, 0] / sums[:, 1]
    # of several writes to one place the last one counts, which is the furthest one
    order = np.argsort(np.abs(means), kind="stable")
    mean, channel = np.zeros(columns), np.zeros(columns, np.int64)
    mean[keys[order, 0]], channel[keys[order, 0]] = means[order], keys[order, 1]
    return mean, channel


def _images(means: tuple[float, ...], count: int = 90) -> Array:
    noise = np.random.default_rng(1).normal(size=(count, len(means), 4, 4)).astype(np.float32)
    return noise + np.array(means, np.float32)[:, None, None]


GOOD, SHIFTED = _images((0.0, 0.0, 0.0)), _images((0.0, 0.5, 0.0))
SAGEMAKER = {"parameter_set": "sagemaker"}

RULE = Rule(
    name="CheckInputImages",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=is_shifted,
    precedence=20,
    recommended={
        "regex": Recommended(
            (
                r"hybridsequential\d+_input_0",
                r"^[A-Z][A-Za-z0-9]*_input_0$",
                r"(?i)(^|_)(input_)?images?(_input)?(_0)?$",
            ),
            "PyTorch's hook names the input of a model after its class, and scripts save images under that name",
        ),
        "exclude_regex": Recommended("Loss|Criterion", "what goes into a loss is a prediction, though of that shape"),
        "threshold_samples": Recommended(
            200, "the mean of two hundred images is known well enough, and is there sooner"
        ),
        "only_images": Recommended(True, "inputs of that name can be features or sequences, which have other means"),
        "recent": Recommended(True, "images that are right for long would hide those that come later"),
    },
    examples=(
        Example("one channel is shifted", {"hybridsequential0_input_0": [SHIFTED] * 3}, met_at=2),
        Example("pixels as bytes", {"Net_input_0": [np.full((600, 8, 8, 3), 99, np.uint8)]}, met_at=0),
        Example("shifted from then on", {"Net_input_0": [GOOD] * 6 + [SHIFTED * 2] * 3}, met_at=6),
        Example(
            "all count alike", {"hybridsequential0_input_0": [SHIFTED] * 5 + [GOOD]}, parameters=SAGEMAKER, met_at=5
        ),
        Example("healthy", {"hybridsequential0_input_0": [GOOD] * 3}),
        Example("too few images to tell", {"hybridsequential0_input_0": [SHIFTED]}),
        Example("a shift below the limit", {"Net_input_0": [_images((0.1, -0.1, 0.1))] * 3}),
        Example("one mode after the other", {"Net_input_0": [SHIFTED, SHIFTED]}, modes=["TRAIN", "EVAL"]),
        Example("features, no images", {"Net_input_0": [np.ones((600, 3))]}),
        Example("what goes into a loss", {"MSELoss_input_0": [SHIFTED] * 3}),
        Example("NaN", {"hybridsequential0_input_0": [np.full((600, 3, 4, 4), np.nan)]}),
        Example("no axis of channels", {"hybridsequential0_input_0": [np.ones(600)]}, parameters=SAGEMAKER),
        Example("unsaved, and empty", {"hybridsequential0_input_0": [None, np.zeros((0, 3, 4, 4))]}),
    ),
)
