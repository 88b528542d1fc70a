"""Whatever happens between us and S3: asked again where that helps, within limits, and never "nothing is there"."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.errors import KeyMissing, KeyRefused, StorageUnavailable
from evaluator.storage import _s3_connection as connection
from evaluator.storage import open_store
from evaluator.storage.base import Store
from evaluator.testing import FakeClock
from tests.s3.traffic import CUT, PAGE, RESET, SILENCE, Asked, Fault, Traffic, Wrong

Put = Callable[..., None]
BUSY = [
    Wrong(503, "SlowDown"),
    Wrong(500, "InternalError"),
    Wrong(429, "TooManyRequests"),
    Wrong(400, "RequestTimeout"),
]
EXPIRED = ["ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidToken", "InvalidAccessKeyId"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(bucket: str, put: Put, s3: Traffic, clock: FakeClock) -> Store:
    """A store with two objects, which has been used."""
    put("job/index/0", b"0123456789")
    put("job/index/1", b"x" * 5000)
    store = open_store(f"s3://{bucket}/job", clock)
    store.list()
    store.requests.list = 0
    s3.forget()
    return store


def every(number: int, wrong: Wrong) -> Fault:
    return lambda asked: wrong if asked.number % number == 0 else None


def always(wrong: Wrong) -> Fault:
    return lambda _: wrong


def once(wrong: Wrong) -> Fault:
    left = iter([wrong])
    return lambda _: next(left, None)


def all_of(store: Store) -> object:
    """One call of each kind that reads."""
    return (
        [entry.key for entry in store.list("index/")],
        store.folders(),
        store.stat("index/0") is not None,
        store.stat("absent"),
        store.read("index/1"),
        store.read_range("index/0", 2, 3),
        store.unfinished(),
        store.root_problem(),
    )


# what passes


@pytest.mark.parametrize("wrong", [*BUSY, RESET, CUT, PAGE], ids=lambda wrong: wrong.way + str(wrong.status))
def test_every_second_request_may_go_wrong(store: Store, s3: Traffic, wrong: Wrong):
    expected = all_of(store)
    store.requests.retries = 0
    s3.fault = every(2, wrong)

    assert all_of(store) == expected
    assert store.requests.retries > 0


@pytest.mark.parametrize("wrong", [Wrong(503, "SlowDown"), RESET], ids=["503", "reset"])
def test_an_outage_of_a_minute_passes(store: Store, s3: Traffic, clock: FakeClock, wrong: Wrong):
    s3.fault = lambda _: wrong if clock.monotonic() < 60 else None

    assert store.read("index/0") == b"0123456789"
    assert 60 <= clock.monotonic() < 90


def test_writing_is_repeated_too(store: Store, s3: Traffic):
    s3.fault = every(2, Wrong())
    store.write("a", b"one")
    store.append("a", b"two")
    store.delete("index/0")

    assert (store.read("a"), store.stat("index/0")) == (b"onetwo", None)


def test_pauses_grow_and_differ_and_are_counted(store: Store, s3: Traffic, clock: FakeClock):
    left = itertools.count()
    s3.fault = lambda _: Wrong() if next(left) < 8 else None
    store.list()

    limits = [min(connection.SHORTEST_PAUSE * 2**number, connection.LONGEST_PAUSE) for number in range(8)]
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(clock.waits, limits, strict=True))
    assert len({pause / limit for pause, limit in zip(clock.waits, limits, strict=True)}) > 1
    assert (store.requests.list, store.requests.retries, s3.counts) == (9, 8, {"LIST": 9})


def test_a_server_that_says_nothing_is_asked_again(
    bucket: str, put: Put, s3: Traffic, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    put("a", b"x")
    monkeypatch.setattr(connection, "READ_TIMEOUT", 0.2)
    s3.fault = once(SILENCE)

    assert open_store(f"s3://{bucket}", clock).read("a") == b"x"


# what does not


@pytest.mark.parametrize(
    "wrong", [Wrong(503, "SlowDown"), Wrong(429, "Throttling"), RESET, PAGE], ids=lambda one: one.way
)
@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.list(),
        lambda store: store.folders(),
        lambda store: store.stat("absent"),
        lambda store: store.stat("index/0"),
        lambda store: store.unfinished(),
        lambda store: store.root_problem(),
    ],
    ids=["list", "folders", "stat absent", "stat", "unfinished", "root"],
)
def test_an_outage_without_end_is_never_nothing_there(
    store: Store, s3: Traffic, clock: FakeClock, wrong: Wrong, call: Callable[[Store], object]
):
    s3.fault = always(wrong)

    with pytest.raises(StorageUnavailable, match=r"S3 did not answer the request within (2\d\d|300) s"):
        call(store)
    assert clock.monotonic() <= connection.PATIENCE


@pytest.mark.parametrize("wrong", [Wrong(503, "SlowDown"), RESET, CUT], ids=lambda one: one.way)
def test_an_outage_without_end_is_no_missing_key(store: Store, s3: Traffic, wrong: Wrong):
    s3.fault = always(wrong)

    with pytest.raises(StorageUnavailable):
        store.read("index/1")


def test_where_nobody_ever_answered_it_is_said_sooner_and_what_to_look_at(aws: pytest.MonkeyPatch, clock: FakeClock):
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(
        StorageUnavailable, match=r"EndpointConnectionError.*; a reachable endpoint \(AWS_ENDPOINT_URL_S3"
    ):
        open_store("s3://bucket/job", clock).list()
    assert clock.monotonic() <= connection.FIRST_PATIENCE


def test_who_is_told_to_stop_does_not_wait_for_s3(store: Store, s3: Traffic, clock: FakeClock):
    s3.fault = always(Wrong())
    clock.wake()

    with pytest.raises(StorageUnavailable):
        store.list()
    assert (clock.monotonic(), s3.counts) == (0, {"LIST": 1 + connection.AFTER_WAKING})


@pytest.mark.parametrize(
    ("status", "code"), [(501, "NotImplemented"), (400, "InvalidRequest"), (405, "MethodNotAllowed")]
)
def test_what_s3_refuses_is_not_asked_again_and_is_no_missing_key(store: Store, s3: Traffic, status: int, code: str):
    s3.fault = always(Wrong(status, code))

    with pytest.raises(StorageUnavailable, match=rf"S3 refuses the request \({code}: as the test wants it\)"):
        store.read("index/0")
    assert s3.counts == {"GET": 1}


def test_a_refusal_that_was_cut_before_it_says_why_is_asked_for_again(store: Store, s3: Traffic):
    s3.fault = every(2, CUT)
    store.stat("index/0")

    with pytest.raises(KeyMissing):
        store.read("absent")
    assert s3.counts["GET"] == 2


def test_a_bucket_that_goes_away_is_no_missing_key(store: Store, s3: Traffic):
    s3.fault = always(Wrong(404, "NoSuchBucket"))

    with pytest.raises(StorageUnavailable, match="there is no such bucket"):
        store.read("index/0")


# credentials


@pytest.mark.parametrize("code", EXPIRED)
def test_expired_credentials_are_read_anew_and_the_call_is_repeated(
    bucket: str, put: Put, s3: Traffic, aws: pytest.MonkeyPatch, tmp_path: Path, clock: FakeClock, code: str
):
    """Long jobs died when temporary credentials expired, because a session keeps those that it began with."""
    put("a", b"x")
    shared = tmp_path / "credentials"
    aws.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")
    shared.write_text("[default]\naws_access_key_id = old\naws_secret_access_key = s\n")
    store = open_store(f"s3://{bucket}", clock)
    store.list()

    def expire(asked: Asked) -> Wrong | None:
        shared.write_text("[default]\naws_access_key_id = new\naws_secret_access_key = s\n")
        return Wrong(400, code) if asked.access_key == "old" else None

    s3.fault = expire
    assert (store.read("a"), store.stat("a") is not None, len(store.list())) == (b"x", True, 1)
    assert (clock.monotonic(), store.requests.retries) == (0, 1)


def test_a_status_without_a_body_does_not_hide_that_credentials_expired(
    store: Store, s3: Traffic, aws: pytest.MonkeyPatch
):
    """S3 answers HEAD with 400 and no body then, which says nothing: a listing says it, and is let in afterwards."""

    def expire(asked: Asked) -> Wrong | None:
        if asked.kind == "LIST":
            aws.setenv("AWS_ACCESS_KEY_ID", "second")
        return Wrong(400, "ExpiredToken") if asked.access_key == "first" else None

    s3.fault = expire

    assert store.stat("index/0") is not None
    assert store.stat("absent") is None
    assert s3.counts["LIST"] == 2


def test_credentials_that_stay_expired_end_the_wait(store: Store, s3: Traffic, clock: FakeClock):
    s3.fault = always(Wrong(400, "ExpiredToken"))

    with pytest.raises(StorageUnavailable, match=r"credentials are not valid \(ExpiredToken\)"):
        store.list()
    assert connection.PATIENCE / 2 < clock.monotonic() <= connection.PATIENCE


def test_credentials_that_cannot_be_read_for_a_while_are_waited_for(
    bucket: str, put: Put, s3: Traffic, aws: pytest.MonkeyPatch, clock: FakeClock
):
    put("a", b"x")
    store = open_store(f"s3://{bucket}", clock)
    store.list()
    aws.delenv("AWS_ACCESS_KEY_ID")
    left = iter([Wrong(400, "ExpiredToken")])

    def expire(_: Asked) -> Wrong | None:
        return next(left, None)

    s3.fault = expire
    wait = clock.wait

    def found_again(seconds: float) -> bool:
        aws.setenv("AWS_ACCESS_KEY_ID", "second")
        return wait(seconds)

    aws.setattr(clock, "wait", found_again)

    assert store.read("a") == b"x"


def test_credentials_that_never_were_valid_are_said_to_be_so_sooner(bucket: str, s3: Traffic, clock: FakeClock):
    s3.fault = always(Wrong(403, "InvalidAccessKeyId"))

    with pytest.raises(StorageUnavailable, match=r"credentials are not valid \(InvalidAccessKeyId\)"):
        open_store(f"s3://{bucket}", clock).list()
    assert clock.monotonic() <= connection.FIRST_PATIENCE


def test_threads_share_a_connection_through_faults_and_new_credentials(
    bucket: str, put: Put, s3: Traffic, aws: pytest.MonkeyPatch, clock: FakeClock
):
    for number in range(40):
        put(f"{number:02d}", str(number).encode())
    store = open_store(f"s3://{bucket}", clock)
    store.list()

    def fault(asked: Asked) -> Wrong | None:
        if asked.number == 10:
            aws.setenv("AWS_ACCESS_KEY_ID", "second")
        if asked.number >= 10 and asked.access_key == "first":
            return Wrong(400, "ExpiredToken")
        return Wrong() if asked.number % 5 == 0 else None

    s3.fault = fault
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda number: store.read(f"{number:02d}"), range(40)))

    assert read == [str(number).encode() for number in range(40)]


# permissions


def forbidden(*kinds: str, key: str = "") -> Fault:
    return lambda asked: Wrong(403, "AccessDenied") if asked.kind in kinds and asked.key.endswith(key) else None


def test_a_listing_that_is_forbidden_names_the_action_and_the_prefix(store: Store, s3: Traffic, bucket: str):
    s3.fault = forbidden("LIST")

    expected = (
        f"s3://{bucket}/job/index/: may not be listed (AccessDenied); "
        f"allow s3:ListBucket on the bucket '{bucket}' for the prefix 'job/index/'"
    )
    with pytest.raises(StorageUnavailable) as caught:
        store.list("index/")
    assert (str(caught.value), s3.counts) == (expected, {"LIST": 1})


def test_one_object_that_is_forbidden_names_the_action_and_the_key_and_costs_only_itself(
    store: Store, s3: Traffic, bucket: str
):
    s3.fault = forbidden("GET", "HEAD", key="index/0")

    with pytest.raises(
        KeyRefused, match=r"may not be read \(AccessDenied\); allow s3:GetObject for this key"
    ) as caught:
        store.read("index/0")
    assert caught.value.mistake.where == f"s3://{bucket}/job/index/0"
    assert store.stat("index/0") is not None
    assert len(store.read("index/1")) == 5000


def test_what_is_absent_is_absent_also_to_those_who_may_list_the_prefix_only(store: Store, s3: Traffic):
    """With such a policy S3 answers 403 for what is not there, so that an end marker was never seen to be absent."""
    there = {"job/index/0", "job/index/1"}

    def prefix_only(asked: Asked) -> Wrong | None:
        return Wrong(403, "AccessDenied") if asked.kind in {"GET", "HEAD"} and asked.key not in there else None

    s3.fault = prefix_only

    assert (store.stat("training_job_end.ts"), store.stat("index/0") is not None) == (None, True)
    with pytest.raises(KeyMissing):
        store.read("events/0")
    before = s3.counts
    assert store.stat("training_job_end.ts") is None
    assert {kind: s3.counts[kind] - before[kind] for kind in before} == {"HEAD": 0, "LIST": 1, "GET": 0}


@pytest.mark.parametrize(
    ("call", "action"),
    [
        (lambda store: store.write("a", b""), "written .*; allow s3:PutObject"),
        (lambda store: store.append("a", b""), "written .*; allow s3:PutObject"),
        (lambda store: store.delete("a"), "removed .*; allow s3:DeleteObject"),
    ],
    ids=["write", "append", "delete"],
)
def test_writing_that_is_forbidden_names_the_action(
    store: Store, s3: Traffic, call: Callable[[Store], None], action: str
):
    s3.fault = forbidden("PUT", "DELETE")

    with pytest.raises(StorageUnavailable, match=action):
        call(store)


def test_a_key_that_vanishes_between_list_and_get_is_missing(store: Store, s3: Traffic, bucket: str):
    (first, *_) = store.list()
    store.delete(first.key)

    with pytest.raises(KeyMissing, match=rf"^s3://{bucket}/job/index/0: nothing is stored there"):
        store.read_range(first.key, 0, 5)


def test_whoever_has_something_else_to_do_waits_for_less_long(store: Store, s3: Traffic, clock: FakeClock):
    s3.fault = always(Wrong())
    store.wait_at_most(30.0)

    with pytest.raises(StorageUnavailable, match=r"within (2\d|1\d|30) s"):
        store.below("index").read("0")
    assert 10 <= clock.monotonic() <= 30


def test_waiting_for_less_long_is_still_waiting(store: Store, s3: Traffic, clock: FakeClock):
    s3.fault = lambda _: Wrong() if clock.monotonic() < 10 else None
    store.wait_at_most(30.0)

    assert store.read("index/0") == b"0123456789"
