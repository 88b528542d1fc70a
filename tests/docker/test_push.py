"""Pushing images: to ECR as moto plays it, with a docker that only notes what it is told, and to a real registry."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import urllib.request
from pathlib import Path

import boto3
import pytest

from tests.docker.engine import CUSTOM, ROOT, Ran, docker, expected_status, part_of, sample_job

HOST = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
DIGEST = "sha256:" + "0" * 64

NOTING = """#!{python}
import json, os, sys
given = "" if "login" not in sys.argv else sys.stdin.read()
with open({notes!r}, "a") as notes:
    print(json.dumps([sys.argv[1:], given]), file=notes)
if sys.argv[1] == os.environ.get("FAILING"):
    sys.exit("denied: no basic auth credentials")
if sys.argv[1] == "image":
    print(json.dumps(["elsewhere@sha256:1", sys.argv[-1].rpartition(":")[0] + "@{digest}"]))
"""


class Docker:
    """A docker that does nothing, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        program = folder / "bin" / "docker"
        program.parent.mkdir()
        program.write_text(NOTING.format(python=sys.executable, notes=str(self.notes), digest=DIGEST))
        program.chmod(0o755)
        self.path = f"{program.parent}:{os.environ['PATH']}"

    @property
    def told(self) -> list[tuple[str, str]]:
        """Each command, and what it was given on its standard input."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [(" ".join(arguments), given) for arguments, given in map(json.loads, lines)]


@pytest.fixture
def noting(tmp_path, monkeypatch):
    one = Docker(tmp_path)
    monkeypatch.setenv("PATH", one.path)
    return one


@pytest.fixture
def name(aws, s3_server):
    """A repository's name that nobody has used; all of AWS is played by a server."""
    aws.setenv("AWS_ENDPOINT_URL", s3_server)
    return f"team/{secrets.token_hex(4)}"


def push(*arguments: str) -> Ran:
    """Call the script as a person does."""
    command = [sys.executable, str(ROOT / "docker" / "push.py"), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def to_ecr(name: str, *arguments: str) -> Ran:
    return push("rule-evaluator", "--region", "eu-central-1", "--repository", name, *arguments)


def repositories(name: str) -> list[str]:
    found = boto3.client("ecr", region_name="eu-central-1").describe_repositories()["repositories"]
    return [one["repositoryUri"] for one in found if one["repositoryName"] == name]


def test_a_missing_repository_is_made_and_the_digest_is_printed(name, noting):
    ran = to_ecr(name)

    assert (ran.code, ran.out, ran.err) == (
        0,
        f"{HOST}/{name}@{DIGEST}\n",
        f"made repository {HOST}/{name}\n",
    )
    assert repositories(name) == [f"{HOST}/{name}"]
    assert [told for told, _ in noting.told] == [
        f"tag rule-evaluator {HOST}/{name}:latest",
        f"login --username AWS --password-stdin {HOST}",
        f"push {HOST}/{name}:latest",
        f"logout {HOST}",
        f"image inspect --format {{{{json .RepoDigests}}}} {HOST}/{name}:latest",
    ]


def test_the_password_goes_to_standard_input_and_nowhere_else(name, noting):
    ran = to_ecr(name)
    ((_, given),) = [one for one in noting.told if one[0].startswith("login")]

    # as moto makes it
    assert given == "123456789012-auth-token"
    assert given not in ran.out + ran.err + " ".join(told for told, _ in noting.told)


def test_a_repository_that_is_there_is_used(name, noting):
    to_ecr(name)
    again = to_ecr(name, "--tag", "v2")

    assert (again.code, again.err) == (0, "")
    assert noting.told[-3][0] == f"push {HOST}/{name}:v2"
    assert repositories(name) == [f"{HOST}/{name}"]


def test_the_tag_of_the_image_is_kept_and_its_name_is_the_repository_s(name, noting):
    push(f"{name}:v3", "--region", "eu-central-1")

    assert noting.told[0][0] == f"tag {name}:v3 {HOST}/{name}:v3"


def test_a_push_that_is_refused_is_told_and_the_password_is_forgotten_all_the_same(name, noting, monkeypatch):
    monkeypatch.setenv("FAILING", "push")

    ran = to_ecr(name)

    assert (ran.code, ran.out) == (3, "")
    assert f"docker push {HOST}/{name}:latest: denied: no basic auth credentials" in ran.err
    assert [told for told, _ in noting.told][-1] == f"logout {HOST}"


def test_without_a_region_or_credentials_it_says_what_is_missing(name, noting, monkeypatch):
    no_region = push("rule-evaluator")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    no_credentials = to_ecr(name)

    assert (no_region.code, no_region.err) == (2, "ECR: You must specify a region.\n")
    assert (no_credentials.code, no_credentials.err) == (2, "ECR: Unable to locate credentials\n")
    assert noting.told == []


def test_another_registry_needs_no_aws_and_no_password(noting):
    ran = push("rule-evaluator", "--registry", "127.0.0.1:5000/team/name")

    assert (ran.code, ran.out) == (0, f"127.0.0.1:5000/team/name@{DIGEST}\n")
    assert [told for told, _ in noting.told][:2] == [
        "tag rule-evaluator 127.0.0.1:5000/team/name:latest",
        "push 127.0.0.1:5000/team/name:latest",
    ]


@pytest.mark.parametrize("registry", ["127.0.0.1:5000", "127.0.0.1:5000/", "/name"])
def test_a_registry_without_host_or_name_is_refused(noting, registry):
    ran = push("rule-evaluator", "--registry", registry)

    assert (ran.code, ran.err) == (
        2,
        f"--registry: {registry!r} has no host and name; HOST:PORT/NAME would be right\n",
    )
    assert noting.told == []


def test_without_docker_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert push("rule-evaluator", "--registry", "127.0.0.1:5000/name").err == (
        "docker: is not installed; a docker command on the PATH would be right\n"
    )


@pytest.mark.usefixtures("engine")
def test_what_is_pushed_to_a_registry_and_pulled_back_runs_the_same_job(tmp_path):
    registry = os.environ.get("LOOPBACK_REGISTRY")
    if not registry:
        pytest.skip("needs a registry on loopback: docker/with-engine.sh make image-test")
    name = f"{registry}/team/rule-evaluator"

    pushed = push(CUSTOM, "--registry", name)
    digest = pushed.out.strip()
    own = docker("image", "inspect", "--format", "{{.Id}}", CUSTOM).out
    # what this machine has is forgotten, but for the layers that the image's other name keeps
    docker("image", "rm", f"{name}:latest")
    docker("pull", digest)
    try:
        pulled = docker("image", "inspect", "--format", "{{.Id}}", digest).out
        job = sample_job(tmp_path, image=digest)
        ran = job.run()
    finally:
        docker("image", "rm", digest)

    assert (pushed.code, pushed.err) == (0, "")
    assert digest.startswith(f"{name}@sha256:")
    assert own == pulled
    assert ran.code == 1, ran.err
    assert expected_status() == part_of(expected_status(), job.status)
    # the engine had the layers of the other name, so what the registry holds is looked at itself
    for layer in layers(registry, "team/rule-evaluator"):
        assert layer == "sha256:" + hashlib.sha256(content(registry, f"team/rule-evaluator/blobs/{layer}")).hexdigest()


def content(registry: str, path: str, accept: str = "*/*") -> bytes:
    """What a registry answers."""
    asked = urllib.request.Request(f"http://{registry}/v2/{path}", headers={"Accept": accept})
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - http, to this machine
        return bytes(answer.read())


def layers(registry: str, name: str) -> list[str]:
    """The digests of an image's layers, as its manifest in the registry has them."""
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = json.loads(content(registry, f"{name}/manifests/latest", kind))
    digests = [str(layer["digest"]) for layer in manifest["layers"]]
    assert len(digests) > 1
    return digests
