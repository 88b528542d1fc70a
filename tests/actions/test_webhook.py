"""Sending a finding to a URL: retried within limits, redirected nowhere, and without ever showing the URL."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.actions.base import NotDone, Secret
from evaluator.actions.webhook import ACTION, LONGEST_PAUSE, WebhookParameters
from evaluator.testing import FakeClock
from tests.actions.receivers import Receiver, do, receiver
from tests.sinks.made import make_finding

SECRET_PATH = "/services/T0/B0/very-secret"  # noqa: S105 - of a receiver in this test


def send(one: Receiver, clock: FakeClock | None = None, **parameters: Any) -> dict[str, object]:
    return do(ACTION, clock=clock, secrets={"url": one.url + SECRET_PATH}, **{"timeout": 5, **parameters})


def test_the_finding_arrives_as_it_is_written_with_its_id_as_key():
    finding = make_finding(last_healthy_step=2)
    with receiver() as one:
        details = do(ACTION, finding=finding, secrets={"url": one.url + SECRET_PATH})

    (got,) = one.received
    assert details == {"status": 200, "tries": 1}
    assert (got.path, got.document) == (SECRET_PATH, finding.document())
    assert (got.headers["Idempotency-Key"], got.headers["Content-Type"]) == (finding.id, "application/json")
    assert got.document["last_healthy_step"] == 2


def test_a_token_goes_along():
    with receiver() as one:
        do(ACTION, secrets={"url": one.url, "token": "abc"})

    assert one.received[0].headers["Authorization"] == "Bearer abc"


def test_without_a_token_nothing_is_said_of_one():
    with receiver() as one:
        send(one)

    assert "Authorization" not in one.received[0].headers


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_what_may_pass_is_tried_again(status: int):
    clock = FakeClock()
    with receiver(status, status, 200) as one:
        details = send(one, clock)

    assert details == {"status": 200, "tries": 3}
    assert clock.waits == [1, 2]
    assert len({got.headers["Idempotency-Key"] for got in one.received}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_what_will_not_pass_is_not(status: int):
    with receiver(status) as one, pytest.raises(NotDone, match=rf"the receiver answers {status} \(tried once\)"):
        send(one)

    assert len(one.received) == 1


def test_it_is_given_up_after_so_many_tries():
    clock = FakeClock()
    with receiver(500) as one, pytest.raises(NotDone, match=r"answers 500 \(tried 3 times\)"):
        send(one, clock, tries=3)

    assert (len(one.received), clock.waits) == (3, [1, 2])


def test_the_receiver_says_how_long_to_wait_within_limits():
    clock = FakeClock()
    with receiver((429, {"Retry-After": "7"}, b""), (503, {"Retry-After": "86400"}, b""), 200) as one:
        send(one, clock)

    assert clock.waits == [7, LONGEST_PAUSE]


def test_no_pause_is_made_once_the_job_is_told_to_stop():
    clock = FakeClock()
    clock.wake()
    with receiver(500) as one, pytest.raises(NotDone):
        send(one, clock)

    assert len(one.received) == 1


def test_a_receiver_that_does_not_answer_is_left():
    with receiver(None) as one, pytest.raises(NotDone, match=r"did not answer within 0.2 s \(tried 2 times\)"):
        send(one, timeout=0.2, tries=2)


def test_a_receiver_that_is_not_there_is_said_without_saying_where():
    with receiver() as gone:
        pass
    with pytest.raises(NotDone) as told:
        send(gone, tries=2)

    assert str(told.value) == "the receiver cannot be reached: Connection refused (tried 2 times)"


def test_a_redirect_is_not_followed():
    with receiver() as other:
        with receiver((307, {"Location": other.url}, b"")) as one, pytest.raises(NotDone, match="answers 307, a redir"):
            send(one)
        with receiver((302, {"Location": other.url}, b"")) as one, pytest.raises(NotDone, match="answers 302, a redir"):
            send(one)

        assert other.received == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "host/very-secret", "", "http://"])
def test_a_secret_that_is_no_url_of_the_web_is_refused_and_not_shown(url: str):
    with pytest.raises(NotDone) as told:
        do(ACTION, secrets={"url": url})

    assert str(told.value) == "environment variable SOME_TOKEN holds no URL that begins with http:// or https://"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/very-secret a\n", "http://[very-secret", "http://x:very-secret/"])
def test_no_error_shows_the_url(url: str):
    with pytest.raises(NotDone) as told:
        do(ACTION, secrets={"url": url}, tries=1, timeout=1)

    assert "very-secret" not in str(told.value)


def test_a_token_that_is_no_header_is_not_shown():
    with receiver() as one, pytest.raises(NotDone) as told:
        do(ACTION, secrets={"url": one.url, "token": "very\nsecret"})

    assert "very" not in str(told.value)


def test_a_secret_of_a_file_is_read_each_time(tmp_path):
    path = tmp_path / "url"
    secret = Secret.of_file(str(path))
    path.write_text("first\n")
    first = secret.read()
    path.write_text("second")

    assert (first, secret.read()) == ("first", "second")


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), (b"  \n", "is empty"), (b"\xff\xfe", "holds no text")]
)
def test_a_file_without_a_secret_is_said_by_its_path(tmp_path, content, why):
    path = tmp_path / "url"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(NotDone, match=why) as told:
        Secret.of_file(str(path)).read()
    assert str(path) in str(told.value)


def test_a_secret_is_not_in_its_representation():
    assert "hidden" not in repr(Secret.of_variable("A_KEY", "hidden"))


def test_a_value_that_does_not_fit_is_no_webhook():
    with pytest.raises(ValueError, match="shape"):
        WebhookParameters.model_validate({"shape": "pigeon"})
