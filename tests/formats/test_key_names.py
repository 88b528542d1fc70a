"""Names of files below the root of a trial, and of saved reductions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError
from evaluator.formats.key_names import (
    collections_key,
    event_key,
    index_bucket,
    index_key,
    natural_key,
    parse_collections_key,
    parse_index_key,
)
from evaluator.formats.reduction_names import REDUCTIONS, parse_saved_name, reduction_name

DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
DEVICE_IN_FILES = "_job-localhost_replica-0_task-0_device-GPU-0"


def test_keys_are_those_of_the_reference() -> None:
    assert [index_key(1234, "worker_0"), event_key(3, "algo-1"), collections_key("worker_0")] == [
        "index/000000001/000000001234_worker_0.json",
        "events/000000000003/000000000003_algo-1.tfevents",
        "collections/000000000/worker_0_collections.json",
    ]


def test_device_names_are_serialized() -> None:
    assert [index_key(0, DEVICE), event_key(0, DEVICE), collections_key(DEVICE)] == [
        f"index/000000000/000000000000_{DEVICE_IN_FILES}.json",
        f"events/000000000000/000000000000_{DEVICE_IN_FILES}.tfevents",
        f"collections/000000000/{DEVICE_IN_FILES}_collections.json",
    ]


@pytest.mark.parametrize("worker", ["worker_0", "worker_63", "algo-1", "my-host_1", DEVICE])
@pytest.mark.parametrize("step", [0, 999, 1000, 10**12, 10**13 + 1])
def test_step_and_worker_come_back(step: int, worker: str) -> None:
    assert parse_index_key(index_key(step, worker)) == (step, worker)
    assert parse_collections_key(collections_key(worker)) == worker


def test_only_the_last_part_of_a_name_decides_about_device_names() -> None:
    assert parse_index_key("index/a__b/000000000001_worker_0.json") == (1, "worker_0")


def test_the_legacy_suffix_is_accepted() -> None:
    assert parse_index_key("index/000000000/000000000001_worker_0.csv") == (1, "worker_0")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "index/",
        "index/000000000/",
        "index/000000000/foo.json",
        "index/000000000/000000000001_.json",
        "index/000000000/000000000001_worker_0.json.tmp",
        "index/000000000/000000000001_worker_0.json.sagemaker-uploaded",
        "index/000000000/000000000001_worker_0_json",
        "index/000000000/-00000000001_worker_0.json",
        "index/000000000/٣_worker_0.json",
        f"index/000000000/{'9' * 19}_worker_0.json",
        "index_old/000000000/000000000001_worker_0.json",
        "events/000000000001/000000000001_worker_0.json",
        "000000000001_worker_0.json",
        "collections/000000000/worker_0_collections.json",
    ],
)
def test_a_foreign_name_is_no_index_file(key: str) -> None:
    assert parse_index_key(key) is None


@pytest.mark.parametrize(
    "key",
    [
        "",
        "collections/",
        "collections/000000000/_collections.json",
        "collections/000000000/worker_0_collections.json.tmp",
        "index/0/worker_0_collections.json",
    ],
)
def test_a_foreign_name_is_no_collections_file(key: str) -> None:
    assert parse_collections_key(key) is None


@pytest.mark.parametrize("worker", ["", "a\0b", "a\\b"])
def test_a_worker_that_cannot_be_in_a_file_name_is_refused(worker: str) -> None:
    with pytest.raises(FormatError, match="cannot be part of a file name"):
        index_key(0, worker)


def test_a_worker_name_cannot_leave_the_trial() -> None:
    assert index_key(0, "../../x") == "index/000000000/000000000000_.._.._x.json"


@pytest.mark.parametrize(
    ("step", "bucket"), [(0, "000000000"), (999, "000000000"), (1000, "000000001"), (10**12, "1000000000")]
)
def test_a_thousand_steps_share_a_bucket(step: int, bucket: str) -> None:
    assert index_bucket(step) == bucket


def test_workers_are_sorted_as_people_count() -> None:
    expected = ["algo-1", "worker", "worker_0", "worker_9", "worker_10", "worker_10_b", "worker_100"]
    shuffled = random.Random(1).sample(expected, len(expected))  # noqa: S311 - one order is as good as another

    assert sorted(shuffled, key=natural_key) == expected


@given(st.lists(st.text(), unique=True))
def test_any_two_workers_have_an_order(workers: list[str]) -> None:
    backwards = workers[::-1]

    assert sorted(workers, key=natural_key) == sorted(backwards, key=natural_key)


@given(st.text())
def test_any_key_is_parsed_or_foreign(key: str) -> None:
    for found in (parse_index_key(f"index/{key}"), parse_collections_key(f"collections/{key}")):
        assert found is None or found


@pytest.mark.parametrize("reduction", sorted(REDUCTIONS))
def test_a_reduction_comes_back_with_its_tensor(reduction: str) -> None:
    assert parse_saved_name(reduction_name(reduction, "dense/kernel:0")) == ("dense/kernel:0", reduction)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ("dense/kernel:0", ("dense/kernel:0", None)),
        ("scope/smdebug/reductions/l2/w", ("w", "l2")),
        ("smdebug/reductions/median/w", ("smdebug/reductions/median/w", None)),
        ("smdebug/reductions/max/", ("smdebug/reductions/max/", None)),
        ("smdebug/reductions/max", ("smdebug/reductions/max", None)),
        ("smdebug/reductions/", ("smdebug/reductions/", None)),
    ],
)
def test_a_saved_name_is_a_reduction_only_with_a_known_one(saved: str, expected: tuple[str, str | None]) -> None:
    assert parse_saved_name(saved) == expected


def test_an_unknown_reduction_is_not_written() -> None:
    with pytest.raises(FormatError, match="w: reduction 'maxx' is not known; did you mean 'max'"):
        reduction_name("maxx", "w")
