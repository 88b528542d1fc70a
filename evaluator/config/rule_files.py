"""Files with a rule of the user's own: where they are, and what can be checked of them without running them."""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict

from evaluator.config.request import RuleFile, RuleRequest
from evaluator.errors import EvaluatorError, Mistake
from evaluator.isolation.environment import is_secret
from evaluator.rule import Need, Rule, RuleParameters

SUFFIX = ".py"

_LOCATION = re.compile(r"(.+?\.py)(?::(.*))?", re.DOTALL)
_NEVER_A_PARAMETER = ("AWS_", "RULE_EVALUATOR_")
_HEXADECIMAL = frozenset("0123456789abcdef")


class AnyParameters(RuleParameters):
    """Stands in for parameters that only the file itself knows."""

    model_config = ConfigDict(extra="allow")


def stand_in(request: RuleRequest) -> Rule:
    """A rule in place of the one in the file, which is loaded in a process of its own only."""
    return Rule(
        name=request.use,
        severity="error",
        parameters=AnyParameters,
        requires=_nothing,
        condition=_never,
        other_trials=True,
    )


def file_rule_name(file: RuleFile) -> str:
    """What the rule of a file is called before the file is loaded: the name in it, else the file's stem."""
    return file.name or PurePosixPath(_path_of(file.path)).stem or file.path


def parse_file_location(text: str) -> tuple[str, str | None] | None:
    """The file and what follows the colon after it, in `WHERE.py[:REST]`; None where no file is named.

    WHERE ends at the first .py that a colon or the end follows.
    """
    match = _LOCATION.fullmatch(text)
    return None if match is None else (match[1], match[2])


def beside(location: str, folder: Path) -> str:
    """The location, a relative path being relative to the folder of the configuration file it stands in."""
    return location if "://" in location else str(folder / location)


def is_hidden(variable: str) -> bool:
    """Whether a variable of the environment is kept from rule files: ours, AWS's, and what sounds like a secret."""
    return is_never_a_parameter(variable) or is_secret(variable)


def is_never_a_parameter(variable: str) -> bool:
    """Whether a variable is about this program or about AWS, whatever the rule takes."""
    return variable.upper().startswith(_NEVER_A_PARAMETER)


def fetch_rule_file(location: str) -> Path | Mistake:
    """The local file, as an absolute path, of a path or URI; a local one need not exist."""
    scheme, separator, _ = location.partition("://")
    if not separator:
        return Path(location).absolute()
    if scheme == "file":
        return Path(_path_of(location)).absolute()
    if scheme == "s3":
        return _copied(location)
    what = f"rule file {location!r} is at {scheme}://, which is not supported"
    return Mistake(location, what, "give a local path, a file:// or an s3:// URI")


def check_rule_file(file: RuleFile, where: str) -> RuleFile | list[Mistake]:
    """The file with its local path, or everything that is wrong with it."""
    mistakes: list[Mistake] = []
    if file.name is not None and not file.name.isidentifier():
        mistakes.append(Mistake(where, f"{file.name!r} is no name of a class or RULE", "expected a Python name"))
    if file.sha256 is not None and not (len(file.sha256) == 64 and _HEXADECIMAL.issuperset(file.sha256)):
        mistakes.append(Mistake(where, f"sha256 {file.sha256!r} does not fit", "expected 64 hexadecimal digits"))
    found = _read(file.path, where)
    if isinstance(found, Mistake):
        return [*mistakes, found]
    path, digest = found
    if not mistakes and file.sha256 not in (None, digest):
        what = f"rule file {str(path)!r} has another sha256 than the one given: {digest}"
        mistakes.append(Mistake(where, what, "give the file that was meant, or the right sha256"))
    return mistakes or replace(file, path=str(path))


def _read(location: str, where: str) -> tuple[Path, str] | Mistake:
    """The local path of a location, and the sha256 of what is there."""
    what = f"rule file {location!r}"
    if not _path_of(location).endswith(SUFFIX):
        right = "give the one Python file that the rule is in, not a folder or prefix"
        return Mistake(where, f"{what} does not end in .py", right)
    path = fetch_rule_file(location)
    if isinstance(path, Mistake):
        return replace(path, where=where)
    try:
        if path.exists() and not path.is_file():
            return Mistake(where, f"{what} is no file", "give the Python file that the rule is in")
        with path.open("rb") as content:
            return path, hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return Mistake(where, f"{what} does not exist", "give the path of a Python file")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Mistake(where, f"{what} cannot be read: {reason}", "give a file that can be read")


def _copied(uri: str) -> Path | Mistake:
    """A copy of a file on S3, alone in a folder that goes away with this process."""
    from evaluator.storage._single import read_uri  # noqa: PLC0415 - most files are local

    what = f"rule file {uri!r}"
    try:
        content = read_uri(uri)
    except EvaluatorError as error:
        return Mistake(uri, f"{what}: {error.mistake.what}", error.mistake.would_be_right)
    try:
        folder = Path(tempfile.mkdtemp(prefix="rule-file-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = folder / PurePosixPath(_path_of(uri)).name
        path.write_bytes(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Mistake(uri, f"{what} cannot be kept for the time of the job: {reason}", "a folder for temporary files")
    return path


def _path_of(location: str) -> str:
    """The part of a path or URI that is the path."""
    scheme, separator, _ = location.partition("://")
    if not separator:
        return location
    return unquote(urlsplit(location).path) if scheme == "file" else urlsplit(location).path


def _nothing(_: RuleParameters) -> tuple[Need, ...]:
    return ()


def _never(*_: object) -> NoReturn:
    raise TypeError("a rule of a file is judged in its own process only")
