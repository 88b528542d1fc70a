"""Configuration files are read from S3, and what is wrong there is a mistake like any other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluator.config.files import read_config_file
from tests.s3.traffic import Traffic, Wrong

Put = Callable[..., None]


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("conf/job 1.json", b'{"rule": [{"use": "AllZero"}], "labels": {"a": "b"}}'),
        ("job.toml", b'[[rule]]\nuse = "AllZero"\n[labels]\na = "b"\n'),
    ],
)
def test_a_file_on_s3_says_what_a_local_one_does(bucket: str, put: Put, key: str, content: bytes):
    put(key, content)
    read = read_config_file(f"s3://{bucket}/{key}")

    assert ([request.use for request in read.requests], read.labels, read.mistakes) == (["AllZero"], {"a": "b"}, [])


def mistake(location: str) -> str:
    (found,) = read_config_file(location).mistakes
    return str(found)


def test_what_is_wrong_in_it_says_where(bucket: str, put: Put):
    put("job.json", b"{")

    assert mistake(f"s3://{bucket}/job.json").startswith(f"s3://{bucket}/job.json: is not JSON: line 1, column 2")


def test_a_file_that_is_absent_or_may_not_be_read_is_a_mistake(bucket: str, s3: Traffic):
    location = f"s3://{bucket}/job.json"
    absent = mistake(location)
    s3.fault = lambda _: Wrong(403, "AccessDenied")

    assert absent == f"{location}: there is no such object"
    assert mistake(location) == f"{location}: may not be read (AccessDenied); allow s3:GetObject for this key"


def test_a_file_whose_name_says_nothing_is_not_even_read(bucket: str, s3: Traffic):
    assert mistake(f"s3://{bucket}/job.yaml").endswith("configuration file ends in '.yaml'; expected .json or .toml")
    assert s3.counts == {}
