"""Single files are read by their URI, as they are now."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from evaluator.errors import InputError, KeyMissing, KeyRefused, StorageUnavailable
from evaluator.storage._single import read_uri
from tests.s3.traffic import Traffic, Wrong

Put = Callable[..., None]


@pytest.mark.parametrize("key", ["a.json", "some/job__1/a b.json", "50%/a+b%20c.py", "ünï.toml", "a?b#c.json"])
def test_one_object_is_read_without_a_listing(bucket: str, put: Put, s3: Traffic, key: str):
    put(key, b"content")

    assert read_uri(f"s3://{bucket}/{key}") == b"content"
    assert {asked.key for asked in s3.asked} == {key}
    assert "LIST" not in s3.counts


def test_a_file_that_comes_or_changes_later_is_seen(bucket: str, put: Put):
    """The listing cache of s3fs never expires by default."""
    uri = f"s3://{bucket}/rules/mine.py"
    with pytest.raises(KeyMissing, match="there is no such object"):
        read_uri(uri)
    put("rules/mine.py", b"one")
    first = read_uri(uri)
    put("rules/mine.py", b"another one")

    assert (first, read_uri(uri)) == (b"one", b"another one")


def test_no_permission_names_the_action(bucket: str, s3: Traffic):
    s3.fault = lambda _: Wrong(403, "AccessDenied")

    with pytest.raises(KeyRefused, match=rf"^s3://{bucket}/a: may not be read .*; allow s3:GetObject for this key"):
        read_uri(f"s3://{bucket}/a")


def test_what_s3_refuses_is_no_missing_file(bucket: str, s3: Traffic):
    s3.fault = lambda _: Wrong(400, "InvalidRequest")

    with pytest.raises(StorageUnavailable):
        read_uri(f"s3://{bucket}/a")


def test_without_credentials_it_is_said_what_to_set(s3: Traffic, aws: pytest.MonkeyPatch):
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(StorageUnavailable, match="AWS_ACCESS_KEY_ID"):
        read_uri("s3://bucket/a")


@pytest.mark.parametrize("package", ["s3fs", "boto3"])
def test_without_the_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(InputError, match=r"pip install 'rule-evaluator\[s3\]'"):
        read_uri("s3://bucket/a")


def test_a_uri_without_a_bucket_is_refused():
    with pytest.raises(InputError, match="is not the name of a bucket"):
        read_uri("s3:///a")
