"""Fixtures for tests on S3: a server in its own process for all of them, and a bucket of its own for each.

Nothing of the machine's own configuration for AWS is used.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evaluator.storage._s3_connection import make_client
from tests.s3.moto_process import moto_server
from tests.s3.small_server import SmallServer, small_server
from tests.s3.traffic import Traffic, traffic


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of a server that behaves like S3, in its own process."""
    with moto_server() as url:
        yield url


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment with credentials and nothing else: no region, no profile, no endpoint."""
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no aws config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no aws credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "first")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return monkeypatch


@pytest.fixture
def s3(s3_server: str, aws: pytest.MonkeyPatch) -> Iterator[Traffic]:
    """The way to the server, which counts requests and can spoil them."""
    with traffic(s3_server) as flow:
        aws.setenv("AWS_ENDPOINT_URL", flow.url)
        yield flow


@pytest.fixture
def bucket(s3: Traffic, s3_server: str, aws: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket."""
    name = f"bucket-{secrets.token_hex(8)}"
    client = make_client("test")
    client.create_bucket(Bucket=name)
    s3.forget()
    return name


@pytest.fixture
def put(s3: Traffic, bucket: str) -> Any:
    """Puts an object into the bucket; any key that S3 allows."""
    client = make_client("test")

    def put_object(key: str, data: bytes = b"") -> None:
        client.put_object(Bucket=bucket, Key=key, Body=data)
        s3.forget()

    return put_object


@pytest.fixture
def upload(s3: Traffic, bucket: str) -> Callable[[Path, str], str]:
    """Puts the files of a folder under a prefix of the bucket; gives the URI."""
    client = make_client("test")

    def upload_folder(folder: Path, prefix: str) -> str:
        def put_file(path: Path) -> None:
            key = f"{prefix}/{path.relative_to(folder).as_posix()}".lstrip("/")
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put_file, (path for path in folder.rglob("*") if path.is_file())))
        s3.forget()
        return f"s3://{bucket}/{prefix}".rstrip("/")

    return upload_folder


@pytest.fixture
def small(aws: pytest.MonkeyPatch) -> Iterator[SmallServer]:
    """A small server with room for many objects, to be filled by the test."""
    with small_server() as server:
        aws.setenv("AWS_ENDPOINT_URL", server.url)
        yield server
