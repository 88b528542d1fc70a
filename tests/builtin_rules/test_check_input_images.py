"""CheckInputImages: the mean of each channel, over many images."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

RULE, NAME = "CheckInputImages", "hybridsequential0_input_0"


def images(seed: int, count: int, mean: float, channels: int = 3) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(mean, 1, (count, channels, 3, 3)).astype(np.float32)


def slow_verdicts(batches: list[np.ndarray], channel: int) -> list[float | None]:
    """At each step the mean that is furthest from zero, once 500 images were seen."""
    seen = 0
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    verdicts: list[float | None] = []
    for batch in batches:
        seen += len(batch)
        for place in np.ndindex(batch.shape):
            at = place[channel]
            sums[at] = sums.get(at, 0.0) + float(batch[place])
            counts[at] = counts.get(at, 0) + 1
        verdicts.append(max(abs(sums[at] / counts[at]) for at in sums) if seen >= 500 else None)
    return verdicts


def test_parameters_are_sagemakers():
    assert defaults(RULE) == {
        "threshold_mean": 0.2,
        "threshold_samples": 500,
        "regex": (".*hybridsequential0_input_0",),
        "channel": 1,
    }


@pytest.mark.parametrize(("seed", "channel"), [(0, 1), (1, 1), (2, 3), (3, 0), (4, 2)])
def test_it_agrees_with_the_slow_way(seed: int, channel: int):
    generator = np.random.default_rng(seed)
    batches = [images(seed + at, 8 * int(generator.integers(8, 16)), generator.normal(0, 0.4)) for at in range(10)]
    if channel == 0:
        batches = [batch[:64] for batch in batches]
    verdicts = slow_verdicts(batches, channel)
    expected = next((step for step, mean in enumerate(verdicts) if mean is not None and mean > 0.2), None)

    result = judge(RULE, {NAME: batches}, channel=channel)

    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(verdicts[expected], rel=1e-5)


def test_batches_of_64_reach_500_images_at_step_7():
    assert judge(RULE, {NAME: [images(at, 64, 1.0) for at in range(9)]}).met_at == 7


def test_fewer_images_are_not_judged_and_it_says_so():
    result = judge(RULE, {NAME: [images(0, 64, 1.0)] * 2})

    assert (result.word, result.evaluated) == ("Error", 0)
    assert "128 of 500 images were seen so far" in result.why


def test_each_channel_has_its_own_mean():
    batch = images(0, 500, 0.0)
    batch[:, 0] += 0.5
    batch[:, 1] -= 0.5

    finding = judge(RULE, {NAME: [batch]}).findings[0]

    assert finding.measured == pytest.approx(0.5, abs=0.05)
    assert finding.details["channel"] in {0, 1}


def test_normalised_images_are_quiet():
    assert judge(RULE, {NAME: [images(at, 100, 0.1) for at in range(8)]}).word == "NoIssuesFound"


def test_workers_are_counted_by_themselves():
    workers = {f"worker_{n}": {NAME: [images(n, 250, 1.0)]} for n in range(2)}

    assert judge(RULE, {}, workers=workers).word == "Error"


def test_a_batch_with_nan_is_left_out():
    bad = np.full((100, 3, 3, 3), np.nan)

    assert judge(RULE, {NAME: [images(0, 500, 1.0), bad, images(0, 10, 1.0)]}, start_step=1).met_at == 2


@pytest.mark.parametrize(
    ("name", "shape", "fires"),
    [
        ("ConvNet_input_0", (600, 3, 4, 4), True),
        ("ResNet_input_0", (600, 4, 4, 1), True),
        ("hybridsequential3_input_0", (600, 1, 4, 4), True),
        ("input_image", (600, 3, 4, 4), True),
        ("images", (600, 4, 4, 3), True),
        ("Net_input_0", (600, 20), False),
        ("Net_input_0", (600, 16, 8, 8), False),
        ("layer1.conv_input_0", (600, 3, 4, 4), False),
        ("relu_input_0", (600, 3, 4, 4), False),
        ("BCEWithLogitsLoss_input_0", (600, 1, 4, 4), False),
        ("Net_input_1", (600, 1, 4, 4), False),
    ],
)
def test_what_are_images_when_recommended(name: str, shape: tuple[int, ...], fires: bool):
    result = judge(RULE, {name: [np.ones(shape, np.float32)]}, parameter_set="recommended")

    assert (result.met_at == 0) is fires


def test_recent_images_count_when_recommended():
    run = {NAME: [images(at, 100, 0.0) for at in range(30)] + [images(at, 100, 1.0) for at in range(5)]}

    assert judge(RULE, run, parameter_set="recommended").met_at == 30
    assert judge(RULE, run).word == "NoIssuesFound"


def test_rows_of_a_picture_are_no_channels_when_recommended():
    dark_above = np.random.default_rng(0).normal(size=(600, 8, 8, 1)).astype(np.float32)
    dark_above[:, :4] -= 0.5
    dark_above[:, 4:] += 0.5

    assert judge(RULE, {NAME: [dark_above]}, parameter_set="recommended").word == "NoIssuesFound"
    assert judge(RULE, {NAME: [dark_above]}).met_at == 0
