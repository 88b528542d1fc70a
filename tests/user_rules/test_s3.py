"""The S3 cases of conformance.md, sections A, B, C, E, F and I, on a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaluator.formats.collection_file import encode_collections
from evaluator.formats.key_names import collections_key
from evaluator.testing import FakeClock
from evaluator.user_rules.event_files import FileReader, FileWriter
from evaluator.user_rules.exceptions import (
    MissingCollectionFiles,
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
)
from evaluator.user_rules.helpers import no_refresh
from evaluator.user_rules.opening import S3Trial, create_trial
from evaluator.user_rules.reader import Limits
from evaluator.user_rules.s3 import ListRequest, ReadObjectRequest, S3Handler
from evaluator.user_rules.signals import has_training_ended, is_rule_signalled_gracetime_passed, training_has_ended
from evaluator.user_rules.surroundings import surround
from tests.conformance import data
from tests.s3.small_server import SmallServer
from tests.s3.traffic import RESET, Traffic, Wrong

Upload = Callable[[Path, str], str]
Put = Callable[..., None]


def steps(folder: Path, first: int, beyond: int, tensors: int = 10) -> Path:
    """conformance.md, GD, for several steps."""
    for step in range(first, beyond):
        data.gd(folder, step, tensors)
    return folder


# trials


@pytest.mark.parametrize("prefix", ["job", "some/where/", "with space+%41/ünï", "a__b/job_1", ""])
def test_every_tensor_has_every_step_and_value(tmp_path: Path, upload: Upload, prefix: str):
    trial = create_trial(upload(steps(tmp_path, 0, 5), prefix.rstrip("/")) + "/" * prefix.endswith("/"))

    assert isinstance(trial, S3Trial)
    assert len(trial.tensor_names()) == 10
    assert [len(trial.tensor(name).steps()) for name in trial.tensor_names()] == [5] * 10
    assert [float(trial.tensor("foo_1").value(step).max()) for step in range(5)] == [0, 1, 2, 3, 4]
    assert trial.workers() == ["worker_0"]


def test_several_trials_lie_side_by_side(tmp_path: Path, upload: Upload):
    folder = steps(tmp_path, 0, 2, 5)
    trials = [create_trial(upload(folder, f"trials/{name}")) for name in ["a", "ab", "b"]]

    assert [trial.steps() for trial in trials] == [[0, 1]] * 3


def test_attributes_are_those_of_the_reference(tmp_path: Path, upload: Upload, bucket: str):
    upload(steps(tmp_path, 0, 1), "some/job")
    trial = S3Trial("mine", bucket, "some/job")

    assert (trial.name, trial.bucket_name, trial.prefix_name, trial.path) == (
        "mine",
        bucket,
        "some/job/",
        f"s3://{bucket}/some/job/",
    )
    assert create_trial(f"  s3://{bucket}/some/job ").name == "job"


def test_a_range_is_half_open(tmp_path: Path, upload: Upload):
    uri = upload(steps(tmp_path, 0, 8), "job")

    assert create_trial(uri, range_steps=(0, 5)).steps() == [0, 1, 2, 3, 4]


def test_new_steps_and_tensors_are_seen_unless_a_block_forbids_it(tmp_path: Path, upload: Upload):
    trial = create_trial(upload(steps(tmp_path / "1", 0, 8), "job"))
    before = trial.has_tensor("foo_11"), len(trial.steps())
    with no_refresh(trial):
        upload(steps(tmp_path / "2", 8, 16), "job")
        frozen = len(trial.steps())
    after = len(trial.steps())
    upload(steps(tmp_path / "3", 16, 17, 13), "job")

    assert (before, frozen, after, len(trial.steps()), trial.has_tensor("foo_11")) == ((False, 8), 8, 16, 17, True)


def test_a_range_holds_while_steps_come(tmp_path: Path, upload: Upload):
    trial = create_trial(upload(steps(tmp_path / "1", 0, 8), "job"), range_steps=(0, 5))
    upload(steps(tmp_path / "2", 8, 12), "job")

    assert trial.steps() == [0, 1, 2, 3, 4]


def test_what_is_asked_too_early_or_in_vain_is_told_apart(tmp_path: Path, upload: Upload):
    for step in (1, 3, 5, 7):
        data.gd(tmp_path, step)
    trial = create_trial(upload(tmp_path, "job"))
    tensor = trial.tensor("foo_0")

    assert len(trial.steps()) == 4
    assert tensor.value(7) is not None
    with pytest.raises(TensorUnavailable):
        trial.tensor("bar")
    with pytest.raises(StepUnavailable):
        tensor.value(6)
    with pytest.raises(StepNotYetAvailable):
        tensor.value(16)


def test_steps_of_several_workers_are_complete_as_the_reference_has_it(tmp_path: Path, upload: Upload):
    data.w3(tmp_path, {0: "abc", 1: "abc", 2: "abc", 3: "ac", 4: "ac"}, ended=False)
    trial = create_trial(upload(tmp_path, "job"))

    assert (trial.steps(), trial.steps(show_incomplete_steps=True)) == ([0, 1, 2], [0, 1, 2, 3, 4])


# collections files, more than a listing shows at once


def announce(small: SmallServer, files: int, num_workers: int) -> None:
    content = encode_collections({}, num_workers)
    for worker in range(files):
        small.objects[f"bucket/job/{collections_key(f'worker_{worker}')}"] = content


@pytest.mark.parametrize(("workers", "ended"), [(1001, False), (9, True)])
def test_the_collections_of_many_workers_are_read(small: SmallServer, workers: int, ended: bool):
    announce(small, workers, workers)
    if ended:
        small.objects["bucket/job/training_job_end.ts"] = b""

    assert len(create_trial("s3://bucket/job").workers()) == workers


def test_missing_collections_of_an_ended_run_are_an_error(small: SmallServer):
    announce(small, 5, 9)
    small.objects["bucket/job/training_job_end.ts"] = b""

    with pytest.raises(MissingCollectionFiles):
        create_trial("s3://bucket/job")


def test_foreign_objects_are_ignored(tmp_path: Path, upload: Upload, put: Put):
    uri = upload(steps(tmp_path, 0, 2), "job")
    for key in ["index/", "index/000000000/x.tmp", "index/000000000/000000000000_worker_0.json.sagemaker-uploaded"]:
        put(f"job/{key}", b"{")
    for key in ["collections/000000000/", "index_old/000000000/000000000009_worker_0.json", "notes.txt"]:
        put(f"job/{key}", b"{")

    assert create_trial(uri).steps() == [0, 1]


# what goes wrong


def test_an_outage_is_no_missing_trial(s3: Traffic, clock: FakeClock):
    s3.fault = lambda _: RESET if clock.monotonic() > 0 else Wrong()

    with pytest.raises(SMDebugError, match="S3 did not answer"):
        create_trial("s3://bucket/job")


def test_no_permission_is_said(s3: Traffic):
    s3.fault = lambda _: Wrong(403, "AccessDenied")

    with pytest.raises(SMDebugError, match="allow s3:ListBucket"):
        create_trial("s3://bucket/job")


def test_a_prefix_under_which_no_trial_begins_is_named_at_last(bucket: str, clock: FakeClock):
    surround(clock, Limits(opening=10))

    with pytest.raises(SMDebugRuntimeError, match=r"job/: holds no object.*waited 10 s"):
        create_trial(f"s3://{bucket}/job/")


# single files and the end marker


def test_event_files_are_written_and_read(bucket: str):
    arrays = [np.full((4, 4), number, np.float32) for number in range(10)]
    with FileWriter(f"s3://{bucket}/job", "worker_0", step=20) as writer:
        for number, array in enumerate(arrays):
            writer.write_tensor(array, f"t{number}")
    read = list(FileReader(writer.name()).read_tensors())

    assert [(name, step) for name, step, *_ in read] == [(f"t{number}", 20) for number in range(10)]
    assert all((found == array).all() for (_, _, found, *_), array in zip(read, arrays, strict=True))


def test_the_end_marker_is_written_and_seen(bucket: str):
    uri = f"s3://{bucket}/job"
    before = has_training_ended(uri)
    training_has_ended(uri)

    assert (before, has_training_ended(uri), has_training_ended(f"s3://{bucket}/jo")) == (False, True, False)


def test_the_signal_to_stop_is_read(bucket: str, put: Put, monkeypatch: pytest.MonkeyPatch, clock: FakeClock):
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "signal")
    seen = [is_rule_signalled_gracetime_passed(f"s3://{bucket}/job")]
    for ago in (0, 120):
        put("job/signal", str(clock.now() - ago).encode())
        seen.append(is_rule_signalled_gracetime_passed(f"s3://{bucket}/job"))

    assert seen == [False, False, True]


# requests


@pytest.fixture
def listed(put: Put, bucket: str) -> str:
    """The keys of the reference's test of listings, as far as they are told."""
    for key in ["a/1", "a/2", "a/b/3", "c/4", "e.txt"]:
        put(f"list/{key}", key.encode())
    return bucket


def test_objects_are_read_whole_from_an_offset_and_in_part(listed: str, put: Put):
    put("o", b"0123456789")
    path = f"s3://{listed}/o"
    requests = [ReadObjectRequest(path), ReadObjectRequest(path, 7), ReadObjectRequest(path, 2, 3)]
    requests += [ReadObjectRequest(path, 2, 0), ReadObjectRequest(f"s3://{listed}/absent")]

    assert S3Handler.get_objects(requests) == [b"0123456789", b"789", b"234", b"", None]
    assert S3Handler.get_object(requests[2]) == b"234"


def test_many_objects_are_read_in_order(small: SmallServer):
    small.objects = {f"bucket/{number}": str(number).encode() for number in range(150)}
    requests = [ReadObjectRequest(f"s3://bucket/{number}") for number in range(150)]

    assert S3Handler.get_objects(requests) == [str(number).encode() for number in range(150)]


def test_listings_know_prefix_delimiter_and_start(listed: str):
    requests = [
        ListRequest(listed, "list/"),
        ListRequest(listed, "list/a"),
        ListRequest(listed, "list/", "/"),
        ListRequest(listed, "list/", StartAfter="list/a/2"),
        ListRequest(listed, "nothing"),
    ]

    assert S3Handler.list_prefixes(requests) == [
        ["list/a/1", "list/a/2", "list/a/b/3", "list/c/4", "list/e.txt"],
        ["list/a/1", "list/a/2", "list/a/b/3"],
        ["list/a/", "list/c/", "list/e.txt"],
        ["list/a/b/3", "list/c/4", "list/e.txt"],
        [],
    ]


def test_a_prefix_is_removed_and_nothing_else(listed: str):
    S3Handler.delete_prefix(f"s3://{listed}/list/a")

    assert S3Handler.list_prefix(ListRequest(listed)) == ["list/c/4", "list/e.txt"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: S3Handler.list_prefix(ListRequest("no-such-bucket")),
        lambda: S3Handler.get_object(ReadObjectRequest("s3://no-such-bucket/a")),
        lambda: S3Handler.list_prefix(ListRequest("x")),
    ],
    ids=["list", "get", "no name"],
)
def test_what_is_wrong_is_an_error_of_the_api_and_never_nothing(s3: Traffic, call: Callable[[], object]):
    with pytest.raises(SMDebugError, match="bucket"):
        call()


@pytest.mark.parametrize("make", [lambda: ReadObjectRequest("/a/b"), lambda: ReadObjectRequest("s3://a/b", None, 5)])
def test_a_request_that_means_nothing_is_refused(make: Callable[[], object]):
    with pytest.raises(SMDebugValueError):
        make()
