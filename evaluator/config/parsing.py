"""Reads JSON and TOML strictly: a name given twice, or NaN, is a mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from evaluator.errors import EvaluatorError, Mistake


def parse_file(path: Path) -> object | Mistake:
    """What a JSON or TOML file holds, or why it cannot be read, with line and column."""
    try:
        return parse_content(path.read_bytes, str(path), path.suffix)
    except FileNotFoundError:
        return Mistake(str(path), "there is no such file", "give the path of a configuration file")
    except OSError as error:
        return Mistake(str(path), f"cannot be read: {error.strerror or error}")


def parse_content(read: Callable[[], bytes], where: str, suffix: str) -> object | Mistake:
    """The same of bytes from anywhere, which are read only where the name says what they are."""
    if suffix not in (".json", ".toml"):
        return Mistake(where, f"configuration file ends in {suffix!r}", "expected .json or .toml")
    try:
        return _parse(read().decode("utf-8-sig"), suffix)
    except RecursionError:
        return Mistake(where, "is nested too deep")
    except ValueError as error:
        return Mistake(where, f"is not {suffix[1:].upper()}: {_problem(error)}")


def parse_location(location: str) -> tuple[Path | None, object | Mistake]:
    """What a file at a local path, a file:// or an s3:// URI holds, and the folder of a local one."""
    scheme, _, rest = location.partition("://")
    if scheme == "s3" and rest:
        from evaluator.storage._single import read_uri  # noqa: PLC0415 - most files are local

        try:
            return None, parse_content(lambda: read_uri(location), location, PurePosixPath(location).suffix)
        except EvaluatorError as error:
            return None, error.mistake
    if rest and scheme != "file":
        what = f"configuration files at {scheme}:// are not supported yet"
        return None, Mistake(location, what, "give a local path, or s3://BUCKET/KEY")
    path = Path(unquote(urlsplit(location).path) if rest else location)
    return path.parent, parse_file(path)


def _parse(text: str, suffix: str) -> object:
    if suffix == ".toml":
        import tomllib  # noqa: PLC0415 - most jobs have no such file

        return tomllib.loads(text)
    parsed: object = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    return parsed


def _problem(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return str(error)


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value; write it as a string")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is given twice in one object")
        found[name] = value
    return found
