"""The S3 store keeps the contract, on a real server; what S3 has of its own, keys and roots."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from evaluator.errors import InputError, KeyMissing, StorageUnavailable
from evaluator.storage import open_store
from evaluator.storage._s3_connection import is_elsewhere, make_client
from evaluator.storage.base import Store
from evaluator.storage.s3 import S3Store
from evaluator.testing import FakeClock
from tests.s3.small_server import SmallServer
from tests.s3.traffic import Traffic
from tests.storage.contract import StoreContract, keys

Put = Callable[..., None]


class TestS3Store(StoreContract):
    not_taken = frozenset({"new\nline"})
    gets_of_appending = 1

    @pytest.fixture
    def store(self, bucket: str) -> Store:
        return open_store(f"s3://{bucket}/some/job__1", FakeClock())


class TestS3StoreAtTheBucketRoot(StoreContract):
    not_taken = frozenset({"new\nline"})
    gets_of_appending = 1

    @pytest.fixture
    def store(self, bucket: str) -> Store:
        return open_store(f"s3://{bucket}", FakeClock())


class TestS3StoreOnASmallServer(StoreContract):
    gets_of_appending = 1

    @pytest.fixture
    def store(self, small: SmallServer) -> Store:
        return open_store("s3://bucket/pre fix", FakeClock())


# roots


@pytest.mark.parametrize("uri", ["s3://{}/a/b", "s3://{}/a/b/", "S3://{}/a/b"])
def test_a_prefix_means_the_same_with_and_without_a_slash(bucket: str, put: Put, uri: str):
    for key in ["a/b/index/0", "a/b", "a/bc/index/1", "a/b2", "x"]:
        put(key)
    store = open_store(uri.format(bucket))

    assert (keys(store), store.folders(), store.uri) == (["index/0"], ["index"], uri.format(bucket))


@pytest.mark.parametrize("uri", ["s3://{}", "s3://{}/"])
def test_the_root_of_a_bucket_is_a_root(bucket: str, put: Put, uri: str):
    put("index/0", b"zero")
    store = open_store(uri.format(bucket))

    assert (keys(store), store.folders(), store.read("index/0"), store.root_problem()) == (
        ["index/0"],
        ["index"],
        b"zero",
        None,
    )


@pytest.mark.parametrize("prefix", ["a b", "50%", "a+b", "a%20b", "ünï", "a?b#c", "job__1", "a&b=c"])
def test_a_prefix_is_taken_as_it_is_written(bucket: str, put: Put, prefix: str):
    put(f"{prefix}/index/a+b %25", b"x")
    store = open_store(f"s3://{bucket}/{prefix}")

    assert (keys(store), store.read("index/a+b %25")) == (["index/a+b %25"], b"x")


@pytest.mark.parametrize("uri", ["s3://", "s3:///a", "s3://a b/c", "s3://ab"])
def test_a_uri_without_a_bucket_is_refused(uri: str):
    with pytest.raises(InputError, match=r"is not the name of a bucket; s3://BUCKET/PREFIX"):
        open_store(uri)


def test_a_prefix_that_holds_nothing_is_not_there(bucket: str):
    assert open_store(f"s3://{bucket}/nothing").root_problem() == "holds no object"


def test_a_bucket_that_is_not_there_is_named(bucket: str):
    with pytest.raises(StorageUnavailable, match=r"^s3://no-such-bucket/a/: there is no such bucket"):
        open_store("s3://no-such-bucket/a").list()


# keys


def test_names_that_cannot_be_keys_are_left_out_and_folder_markers_are_not_even_told(small: SmallServer):
    for key in ["", "index/", "index/0", "index//1", "a/../b", "../c", "./d", "e\\f"]:
        small.objects[f"bucket/job/{key}"] = b""
    store = open_store("s3://bucket/job")

    assert keys(store) == ["index/0"]
    assert sorted(store.refused) == ["../c", "./d", "a/../b", "e\\f", "index//1"]
    assert store.folders() == ["a", "index"]


def test_the_root_counts_for_the_length_of_a_key(small: SmallServer):
    store = open_store(f"s3://bucket/{'r' * 1000}")

    assert store.stat("k" * 24) is None
    with pytest.raises(KeyMissing, match="longer than 1024 bytes"):
        store.read("k" * 24)


def test_a_listing_goes_on_over_pages(small: SmallServer):
    small.objects = {f"bucket/job/index/{number:06d}": b"" for number in range(2500)}
    store = open_store("s3://bucket/job")

    assert (len(store.list()), store.requests.list) == (2500, 3)
    assert (keys(store, "index/", "index/002497"), store.requests.list) == (["index/002498", "index/002499"], 4)


def test_folders_go_on_over_pages(small: SmallServer):
    small.objects = {f"bucket/{number:06d}/{inner}": b"" for number in range(1200) for inner in "ab"}
    store = open_store("s3://bucket")

    assert store.folders() == [f"{number:06d}" for number in range(1200)]


def test_a_vanished_object_is_missing_as_everywhere(bucket: str, put: Put):
    put("index/0")
    store = open_store(f"s3://{bucket}")
    (entry,) = store.list()
    store.delete("index/0")

    assert (store.stat(entry.key), store.list()) == (None, [])
    with pytest.raises(KeyMissing, match=rf"^s3://{bucket}/index/0: nothing is stored there"):
        store.read(entry.key)


def test_an_object_that_grew_is_read_as_it_is_now(bucket: str, put: Put):
    put("a", b"short")
    store = open_store(f"s3://{bucket}")
    store.list()
    put("a", b"longer than before")

    assert (store.read("a"), store.read_range("a", 7, 99)) == (b"longer than before", b"than before")


# how it is reached


def test_no_region_and_path_style_work_on_any_endpoint(bucket: str, s3: Traffic, put: Put, aws: pytest.MonkeyPatch):
    put("a", b"x")
    aws.delenv("AWS_ENDPOINT_URL")
    aws.setenv("AWS_ENDPOINT_URL_S3", s3.url.replace("127.0.0.1", "localhost"))

    assert open_store(f"s3://{bucket}").read("a") == b"x"


def test_the_region_is_that_of_either_variable(aws: pytest.MonkeyPatch):
    regions = [make_client("x").meta.region_name]
    aws.setenv("AWS_REGION", "eu-west-3")
    regions.append(make_client("x").meta.region_name)
    aws.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    regions.append(make_client("x").meta.region_name)

    assert regions == ["us-east-1", "eu-west-3", "eu-west-1"]


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://s3.amazonaws.com", False),
        ("https://s3.cn-north-1.amazonaws.com.cn", False),
        ("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", False),
        ("http://127.0.0.1:9000", True),
        ("http://minio:9000", True),
        ("https://storage.example.org", True),
        ("https://notamazonaws.com", True),
    ],
)
def test_aws_is_told_from_others(endpoint: str, expected: bool):
    assert is_elsewhere(endpoint) == expected


@pytest.mark.parametrize("endpoint", ["nonsense", "http://"])
def test_an_endpoint_that_is_no_url_is_named(aws: pytest.MonkeyPatch, endpoint: str):
    aws.setenv("AWS_ENDPOINT_URL", endpoint)

    with pytest.raises(StorageUnavailable, match=r"s3://bucket/: S3 cannot be used as it is configured: .*ndpoint"):
        open_store("s3://bucket").list()


def test_without_credentials_it_is_said_what_to_set(s3: Traffic, aws: pytest.MonkeyPatch):
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(StorageUnavailable, match=r"no usable credentials for S3: .*; set AWS_ACCESS_KEY_ID"):
        open_store("s3://bucket").list()


def test_without_the_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(InputError, match=r"pip install 'rule-evaluator\[s3\]'"):
        open_store("s3://bucket/a")


def test_the_client_is_shared_with_the_folders_below(bucket: str, put: Put):
    put("a/index/0")
    store = open_store(f"s3://{bucket}")
    assert isinstance(store, S3Store)
    below = store.below("a")

    assert below.bucket.connection is store.bucket.connection
    assert (below.requests is store.requests, keys(below)) == (False, ["index/0"])
