"""Patterns: what they match in folders and on S3, and how few listings that takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.errors import InputError
from evaluator.watching.patterns import Pattern
from tests.s3.traffic import Traffic

Put = Callable[..., None]


def make(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True)
    return root


def names(pattern: object) -> list[str]:
    return [match.name for match in Pattern(str(pattern)).matches()]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("runs/*/debug", ["a-1", "a-2", "b"]),
        ("runs/a-*/debug", ["a-1", "a-2"]),
        ("runs/a-?/debug", ["a-1", "a-2"]),
        ("runs/[b]/debug", ["b"]),
        ("r*/*/d*", ["runs/a-1/debug", "runs/a-2/debug", "runs/b/debug"]),
        ("runs/*", ["a-1", "a-2", "b"]),
        ("runs/*/", ["a-1", "a-2", "b"]),
        ("runs/.*", [".hidden"]),
        ("runs/c*/debug", []),
        ("nowhere/*/debug", []),
        ("runs/a-1/debug", ["debug"]),
    ],
)
def test_a_wildcard_stands_for_a_part_of_a_path(tmp_path: Path, pattern: str, expected: list[str]):
    make(tmp_path, "runs/a-1/debug", "runs/a-2/debug", "runs/b/debug", "runs/.hidden/debug")
    (tmp_path / "runs" / "a-file").touch()

    assert names(tmp_path / pattern) == expected


def test_a_path_after_the_last_wildcard_need_not_be_there(tmp_path: Path):
    make(tmp_path, "runs/a")

    assert [match.uri for match in Pattern(f"{tmp_path}/runs/*/x/y").matches()] == [f"{tmp_path}/runs/a/x/y"]


def test_a_name_with_an_ending_can_be_that_of_a_file(tmp_path: Path):
    make(tmp_path, "runs/a")
    (tmp_path / "runs" / "a" / "log.csv").touch()
    (tmp_path / "runs" / "a" / "notes").touch()

    assert names(f"{tmp_path}/runs/*/*.csv") == ["a/log.csv"]


@pytest.mark.parametrize("given", ["runs/*", "*/a", "./runs/*"])
def test_matches_are_as_relative_as_the_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str):
    make(tmp_path, "runs/a")
    monkeypatch.chdir(tmp_path)

    assert [Path(match.uri) for match in Pattern(given).matches()] == [Path("runs/a")]


def test_a_file_uri_is_a_path_with_encoded_names(tmp_path: Path):
    make(tmp_path, "my runs/50%")

    assert names(f"file://{tmp_path}/my%20runs/*") == ["50%"]


def test_a_link_that_leads_elsewhere_is_left_out_and_named(tmp_path: Path):
    make(tmp_path, "elsewhere", "runs/a")
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")
    pattern = Pattern(f"{tmp_path}/runs/*")

    assert [match.name for match in pattern.matches()] == ["a"]
    assert list(pattern.refused) == [f"{tmp_path}/runs/link"]


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ("s3://b*/runs", "has a wildcard in the name of the bucket"),
        ("runs/*/../x", "has '..' after a wildcard"),
        ("runs/**/x", "'**' is not known"),
    ],
)
def test_what_is_no_pattern_is_said(given: str, mistake: str):
    with pytest.raises(InputError, match=mistake.replace("*", r"\*")):
        Pattern(given)


def test_each_level_with_a_wildcard_costs_one_listing_per_folder(bucket: str, put: Put, s3: Traffic):
    for job in ("job-1", "job-2", "other"):
        for step in range(20):
            put(f"runs/{job}/debug/index/{step}")
    pattern = Pattern(f"s3://{bucket}/runs/job-*/debug")
    s3.forget()

    assert [match.uri for match in pattern.matches()] == [f"s3://{bucket}/runs/job-{job}/debug" for job in (1, 2)]
    assert s3.counts == {"LIST": 1}


def test_a_whole_bucket_can_be_gone_through(bucket: str, put: Put, s3: Traffic):
    put("a/debug/x")
    put("b/debug/x")
    s3.forget()

    assert names(f"s3://{bucket}/*/d*") == ["a/debug", "b/debug"]
    assert s3.counts == {"LIST": 3}
