"""What opening and following a trial on S3 costs: requests are counted, and an idle poll does not grow with history."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from evaluator.formats.collection_file import encode_collections
from evaluator.formats.key_names import index_key
from evaluator.storage._s3_connection import make_client
from evaluator.storage.base import Requests, Store
from evaluator.testing import FakeClock
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Trial
from evaluator.writer import TrialWriter
from tests.s3.small_server import SmallServer
from tests.s3.traffic import Traffic, Wrong

Upload = Callable[[Path, str], str]

INDEX = json.dumps(
    {
        "meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "events/0/0_worker_0.tfevents"},
        "tensor_payload": [{"tensorname": "loss", "start_idx": 0, "length": 60}],
    }
).encode()
COLLECTIONS = encode_collections({}, 1)


def opened(uri: str, clock: FakeClock, *, following: bool = True) -> Trial:
    return Trial(open_run(uri, clock), clock, Waits(0, 300), following=following)


def spent(store: Store, before: Requests) -> tuple[int, int]:
    return store.requests.list - before.list, store.requests.get - before.get


def idle_poll(trial: Trial, clock: FakeClock) -> tuple[int, int]:
    """LISTs and other requests of a poll that finds nothing, with the look at the end marker that follows it."""
    store = trial.source.store
    clock.advance(10)
    before = Requests(store.requests.list, store.requests.get)
    assert list(trial.poll()) == []
    assert not trial.source.ended()
    return spent(store, before)


@pytest.fixture
def history(small: SmallServer) -> Callable[[int], str]:
    """A trial with so many index files, on the small server."""

    def make(steps: int) -> str:
        small.objects = {f"bucket/job/{index_key(step, 'worker_0')}": INDEX for step in range(steps)}
        small.objects["bucket/job/collections/000000000/worker_0_collections.json"] = COLLECTIONS
        return "s3://bucket/job"

    return make


@pytest.mark.parametrize("steps", [100, 1_500, 10_000])
def test_opening_is_one_list_per_thousand_files_and_an_idle_poll_one_per_folder(
    history: Callable[[int], str], steps: int
):
    clock = FakeClock()
    trial = opened(history(steps), clock)
    store = trial.source.store
    trial._arrivals.waiting.clear()
    before = Requests(store.requests.list, store.requests.get)
    trial._see_collections()
    trial._see_files()
    listing = spent(store, before)
    for step in list(trial._arrivals.waiting)[:-1]:
        trial._arrivals.taken(step)
    last = list(trial.poll())

    # one for the collections, and the index; one GET for the collections file
    assert listing == (1 + -(-steps // 1000), 1)
    assert [step.number for step in last] == [steps - 1]
    # the index, and HEAD for the end marker: collections only change when something is saved
    assert [idle_poll(trial, clock) for _ in range(3)] == [(1, 1)] * 3


def test_fifteen_hundred_files_on_a_real_server_cost_the_same(bucket: str, s3: Traffic):
    client = make_client("test")
    with ThreadPoolExecutor(4) as pool:
        for step in range(1500):
            pool.submit(client.put_object, Bucket=bucket, Key=f"job/{index_key(step, 'worker_0')}", Body=INDEX)
    client.put_object(Bucket=bucket, Key="job/collections/000000000/worker_0_collections.json", Body=COLLECTIONS)
    s3.forget()
    clock = FakeClock()
    trial = opened(f"s3://{bucket}/job", clock)
    trial._see_collections()
    trial._see_files()
    for step in list(trial._arrivals.waiting)[:-1]:
        trial._arrivals.taken(step)
    assert [step.number for step in trial.poll()] == [1499]

    s3.forget()
    assert [idle_poll(trial, clock) for _ in range(3)] == [(1, 1)] * 3
    assert s3.counts == {"LIST": 3, "HEAD": 3}


def test_a_new_step_costs_one_more_request_for_its_index_file(history: Callable[[int], str], small: SmallServer):
    clock = FakeClock()
    trial = opened(history(60), clock)
    list(trial.poll())
    small.objects[f"bucket/job/{index_key(60, 'worker_0')}"] = INDEX
    store = trial.source.store
    before = Requests(store.requests.list, store.requests.get)

    assert [step.number for step in trial.poll()] == [60]
    assert spent(store, before) == (2, 1)


# through faults


def saved(folder: Path, steps: int) -> Path:
    with TrialWriter(folder, collections={"losses": ["loss"]}) as writer:
        for step in range(steps):
            writer.save(step, {"loss": np.float32(step)})
    return folder


@pytest.mark.parametrize(
    "wrong", [Wrong(503, "SlowDown"), Wrong(way="reset"), Wrong(way="cut")], ids=["503", "reset", "cut"]
)
def test_a_trial_is_read_whole_through_faults(tmp_path: Path, upload: Upload, s3: Traffic, wrong: Wrong):
    uri = upload(saved(tmp_path, 12), "job")
    s3.fault = lambda asked: wrong if asked.number % 3 == 0 else None
    trial = opened(uri, FakeClock(), following=False)

    read = [(step.number, step.unreadable) for step in trial.finish()]
    assert read == [(step, {}) for step in range(12)]
    assert trial.source.ended()
    assert trial.source.store.requests.retries > 0


def test_one_index_file_that_may_not_be_read_is_named_and_the_rest_is_used(tmp_path: Path, upload: Upload, s3: Traffic):
    uri = upload(saved(tmp_path, 5), "job")
    s3.fault = lambda asked: Wrong(403, "AccessDenied") if asked.kind == "GET" and "0002_w" in asked.key else None
    trial = opened(uri, FakeClock(), following=False)
    steps = {step.number: step.unreadable for step in trial.finish()}

    assert steps.keys() == set(range(5))
    assert steps[2] == {"worker_0": "may not be read (AccessDenied); allow s3:GetObject for this key"}
