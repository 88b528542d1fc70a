"""Pushes an image to a private repository of ECR, which is made where it is missing, or to any other registry.

    python docker/push.py rule-evaluator --region eu-central-1
    python docker/push.py rule-evaluator --registry HOST:PORT/NAME

Prints the digest, so that a job can name exactly this image. Needs docker; for ECR also boto3 and credentials that may
ecr:DescribeRepositories, ecr:CreateRepository, ecr:GetAuthorizationToken and push.
"""  # noqa: INP001 - a script beside the files it belongs to

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OK, INPUT_IS_WRONG, FAILED = 0, 2, 3


class PushError(Exception):
    """Something that keeps an image from being pushed: where, what, and what would be right."""

    def __init__(self, message: str, code: int = INPUT_IS_WRONG) -> None:
        """With the exit code that it ends in."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Login:
    """A short-lived password of a registry."""

    host: str
    user: str
    password: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Push what the arguments say; the exit code."""
    options = _options(arguments)
    try:
        name, _, own_tag = options.image.partition(":")
        tag = options.tag or own_tag or "latest"
        if options.registry:
            digest = push(options.image, _repository(options.registry), tag)
        else:
            repository, login = ecr_repository(options.repository or name, options.region)
            digest = push(options.image, repository, tag, login)
    except PushError as error:
        sys.stderr.write(f"{error}\n")
        return error.code
    sys.stdout.write(f"{digest}\n")
    return OK


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="push", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("image", help="the local image, NAME or NAME:TAG")
    parser.add_argument("--registry", metavar="HOST/NAME", help="a repository of any registry, instead of ECR")
    parser.add_argument("--region", help="of ECR; by default the one that boto3 finds")
    parser.add_argument("--repository", help="its name in ECR; by default that of the image")
    parser.add_argument("--tag", help="in the repository; by default that of the image")
    return parser.parse_args(arguments)


def _repository(registry: str) -> str:
    host, slash, name = registry.partition("/")
    if not (host and slash and name):
        raise PushError(f"--registry: {registry!r} has no host and name; HOST:PORT/NAME would be right")
    return registry


def ecr_repository(name: str, region: str | None) -> tuple[str, Login]:
    """The repository of this name in ECR, made where it is missing, and a password for it."""
    # only here: other registries need no boto3
    try:
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise PushError("ECR: boto3 is not installed; pip install 'rule-evaluator[s3]' would be right") from error
    try:
        client = boto3.client("ecr", region_name=region)
        uri = _uri(client, name)
        (grant,) = client.get_authorization_token()["authorizationData"]
    except (BotoCoreError, ClientError) as error:
        raise PushError(f"ECR: {error}") from error
    user, _, password = base64.b64decode(grant["authorizationToken"]).decode().partition(":")
    return uri, Login(uri.partition("/")[0], user, password)


def _uri(client: Any, name: str) -> str:
    """Where a repository is; it is made where it is missing."""
    try:
        found = client.describe_repositories(repositoryNames=[name])["repositories"][0]
    except client.exceptions.RepositoryNotFoundException:
        found = client.create_repository(repositoryName=name)["repository"]
        sys.stderr.write(f"made repository {found['repositoryUri']}\n")
    return str(found["repositoryUri"])


def push(image: str, repository: str, tag: str, login: Login | None = None) -> str:
    """Push an image as `repository:tag`; its digest there, as `repository@sha256:...`.

    The password is handed to docker by its standard input, where no list of processes shows it, and is forgotten after
    the push.
    """
    target = f"{repository}:{tag}"
    _docker("tag", image, target)
    if login is not None:
        _docker("login", "--username", login.user, "--password-stdin", login.host, given=login.password)
    try:
        _docker("push", target)
    finally:
        if login is not None:
            _docker("logout", login.host)
    digests = json.loads(_docker("image", "inspect", "--format", "{{json .RepoDigests}}", target)) or []
    for digest in digests:
        if str(digest).startswith(f"{repository}@"):
            return str(digest)
    raise PushError(f"{target}: docker knows no digest of it after the push", FAILED)


def _docker(*arguments: str, given: str | None = None) -> str:
    """What docker prints."""
    program = shutil.which("docker")
    if program is None:
        raise PushError("docker: is not installed; a docker command on the PATH would be right")
    ran = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    if ran.returncode:
        raise PushError(f"docker {arguments[0]} {arguments[-1]}: {ran.stderr.strip() or ran.stdout.strip()}", FAILED)
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
