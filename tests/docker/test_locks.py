"""What the images hold is what the lock file says, which everything else was tested with."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docker.engine import ROOT

FILES = ("docker/requirements.lock", "docker/build.lock")


def entries(file: str) -> dict[str, set[str]]:
    """What is locked, with its condition -> its hashes."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / file).read_text().splitlines():
        pinned = re.match(r"(\S+==[^\\]+?)\s*\\?$", line)
        if pinned:
            found[pinned[1]] = set()
        else:
            found[list(found)[-1]].add(line.strip(" \\").removeprefix("--hash="))
    return found


def version_of(entry: str) -> str:
    return entry.split(";", maxsplit=1)[0].strip()


@pytest.mark.parametrize("file", FILES)
def test_each_package_has_the_version_and_hashes_that_were_tested(file):
    tested = {version_of(entry): hashes for entry, hashes in entries("requirements.lock").items()}
    locked = entries(file)

    assert len(locked) > 3
    assert {entry for entry in locked if tested.get(version_of(entry)) != locked[entry]} == set()


def test_the_image_has_the_program_s_dependencies_and_those_of_its_extras_and_no_others_of_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked_for = [*project["project"]["dependencies"], *extras["s3"], *extras["report"], *extras["dask"]]
    only_for_developers = project["dependency-groups"]["dev"]
    names = {re.split(r"==", entry)[0] for entry in entries(FILES[0])}

    def named(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[<>=; ]", one)[0].lower() for one in requirements}

    assert named(asked_for) <= names
    assert named(only_for_developers) & names == set()


def test_the_program_is_built_with_what_pyproject_asks_for():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]

    assert {re.split(r"[<>=]", one)[0] for one in build} <= {entry.split("==")[0] for entry in entries(FILES[1])}


def test_the_context_of_a_build_holds_what_the_dockerfile_copies_and_nothing_that_lies_beside():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert "*" in lines
    assert {path.removeprefix("!") for path in lines if path.startswith("!")} == {
        "docker/*.lock" if path.endswith(".lock") else path for line in copied for path in line.split()
    }


def test_the_dockerfile_asks_nothing_of_its_builder_that_only_buildkit_has():
    text = (ROOT / "Dockerfile").read_text()

    assert re.findall(r"--mount|--security|<<|^# syntax=|COPY .*--(?:link|parents|exclude)", text, re.MULTILINE) == []
    assert re.findall(r"ARG BASE_IMAGE=\S+:\d+\.\d+\.\d+-\S+", text)
