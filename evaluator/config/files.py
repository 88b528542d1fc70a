"""Reads configuration files, JSON or TOML, in SageMaker's shape or in ours."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evaluator.config.request import RuleRequest
from evaluator.config.sagemaker_shape import request_of, users_rule_file
from evaluator.errors import Mistake, did_you_mean

_MISSPELLED = "DebugRulesConfigurations"
"""As AWS's guide writes it in its samples (processing-contract.md 2.2)."""

_LONGEST_NAME = 256
"""Characters (processing-contract.md 1)."""

_BESIDE = frozenset({"DebugHookConfig", "ProfilerConfig", "TensorBoardOutputConfig"})
"""What stands beside the lists in CreateTrainingJob (processing-contract.md 1)."""

_ENTRY = frozenset(
    {
        "RuleConfigurationName",
        "RuleEvaluatorImage",
        "LocalPath",
        "S3OutputPath",
        "InstanceType",
        "VolumeSizeInGB",
        "RuleParameters",
    }
)


@dataclass
class FileContent:
    """What one configuration file holds; with mistakes, everything that could still be understood."""

    requests: list[RuleRequest] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


_Reader = Callable[[Mapping[str, object], str, FileContent], None]


def read_config_file(location: str) -> FileContent:
    """The content of the file at a local path or file:// URI."""
    content = FileContent()
    path = _local_path(location)
    document = path if isinstance(path, Mistake) else parse_file(path)
    if isinstance(document, Mistake):
        content.mistakes.append(document)
    elif not isinstance(document, dict):
        what = f"holds a {type(document).__name__}, not named parts"
        content.mistakes.append(Mistake(location, what, 'expected {"DebugRuleConfigurations": [...]} or our own shape'))
    else:
        _read_document(document, location, content)
    return content


def parse_file(path: Path) -> object | Mistake:
    """What a JSON or TOML file holds, or why it cannot be read, with line and column."""
    if path.suffix not in (".json", ".toml"):
        return Mistake(str(path), f"configuration file ends in {path.suffix!r}", "expected .json or .toml")
    try:
        return _parse(path.read_bytes().decode("utf-8-sig"), path.suffix)
    except FileNotFoundError:
        return Mistake(str(path), "there is no such file", "give the path of a configuration file")
    except OSError as error:
        return Mistake(str(path), f"cannot be read: {error.strerror or error}")
    except RecursionError:
        return Mistake(str(path), "is nested too deep")
    except ValueError as error:
        return Mistake(str(path), f"is not {path.suffix[1:].upper()}: {_problem(error)}")


def _parse(text: str, suffix: str) -> object:
    if suffix == ".toml":
        return tomllib.loads(text)
    parsed: object = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    return parsed


def _problem(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return str(error)


def _local_path(location: str) -> Path | Mistake:
    scheme, _, rest = location.partition("://")
    if not rest:
        return Path(location)
    if scheme == "file":
        return Path(unquote(urlsplit(location).path))
    return Mistake(location, f"configuration files at {scheme}:// are not supported yet", "give a local path")


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value; write it as a string")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is given twice in one object")
    return dict(pairs)


def _read_document(document: Mapping[str, object], where: str, content: FileContent) -> None:
    for key, value in document.items():
        place = f"{where}: {key}"
        if key in _READERS:
            _each(value, place, content, _READERS[key])
        elif key == "settings":
            content.settings.update(_table(value, place, content))
        elif key == "labels":
            _read_labels(_table(value, place, content), place, content)
        elif key == _MISSPELLED:
            right = "write 'DebugRuleConfigurations' (AWS's guide has this misspelling)"
            content.mistakes.append(Mistake(where, f"{key!r} is not known", right))
        elif key in _BESIDE:
            content.notes.append(f"{where}: {key!r} is for the training job and is not used here")
        else:
            content.mistakes.append(
                Mistake(where, f"{key!r} is not known", did_you_mean(key, [*_READERS, "settings", "labels"]))
            )


def _read_labels(labels: Mapping[str, object], where: str, content: FileContent) -> None:
    for label, text in labels.items():
        if isinstance(text, str | int | float):
            content.labels[label] = text if isinstance(text, str) else json.dumps(text)
        else:
            content.mistakes.append(Mistake(where, f"{label!r} is {text!r}", "expected text"))


def _each(value: object, where: str, content: FileContent, read: _Reader) -> None:
    if not isinstance(value, list):
        content.mistakes.append(Mistake(where, f"is a {type(value).__name__}", "expected a list (in TOML [[rule]])"))
        return
    for number, entry in enumerate(value):
        place = f"{where}[{number}]"
        if isinstance(entry, dict):
            read(entry, place, content)
        else:
            content.mistakes.append(Mistake(place, f"is a {type(entry).__name__}", "expected an object"))


def _read_debug_rule(entry: Mapping[str, object], where: str, content: FileContent) -> None:
    name = _configuration_name(entry, where, content)
    where = f"{where} {name}" if name else where
    parameters = entry.get("RuleParameters") or {}
    if not isinstance(parameters, dict):
        content.mistakes.append(Mistake(where, f"RuleParameters is {parameters!r}", "expected a map of strings"))
        return
    request = request_of(parameters, name, where)
    if isinstance(request, Mistake):
        content.mistakes.append(request)
    else:
        content.requests.append(request)
    unused = [key for key in ("LocalPath", "S3OutputPath") if entry.get(key)]
    if unused:
        what = " and ".join(unused)
        content.notes.append(f"{where}: {what} not used: results are written below the job's output folder")


def _read_profiler_rule(entry: Mapping[str, object], where: str, content: FileContent) -> None:
    name = _configuration_name(entry, where, content)
    if name:
        content.notes.append(f"{where}: {name!r} is not evaluated: profiler rules are not built yet in this version")


def _configuration_name(entry: Mapping[str, object], where: str, content: FileContent) -> str | None:
    for key in entry:
        if key not in _ENTRY:
            content.mistakes.append(Mistake(where, f"{key!r} is not known", did_you_mean(key, _ENTRY)))
    name = entry.get("RuleConfigurationName")
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME:
        return name
    what = "RuleConfigurationName is missing" if name is None else f"RuleConfigurationName is {name!r}"
    content.mistakes.append(Mistake(where, what, f"expected 1 to {_LONGEST_NAME} characters"))
    return None


def _read_our_rule(entry: Mapping[str, object], where: str, content: FileContent) -> None:
    if "file" in entry:
        content.mistakes.append(users_rule_file(where, "file"))
        return
    use, name = entry.get("use"), entry.get("name")
    if not isinstance(use, str) or not use.strip():
        what = "'use' is missing" if use is None else f"'use' is {use!r}"
        content.mistakes.append(Mistake(where, what, 'the name of a rule, for example use = "VanishingGradient"'))
        return
    if name is not None and not isinstance(name, str):
        content.mistakes.append(Mistake(where, f"'name' is {name!r}", "expected text"))
        name = None
    parameters = {key: value for key, value in entry.items() if key not in ("use", "name")}
    content.requests.append(RuleRequest(use.strip(), parameters, "ours", f"{where} {name or use}", name))


def _table(value: object, where: str, content: FileContent) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    content.mistakes.append(Mistake(where, f"is {value!r}", "expected a table of names and values"))
    return {}


_READERS: dict[str, _Reader] = {
    "DebugRuleConfigurations": _read_debug_rule,
    "ProfilerRuleConfigurations": _read_profiler_rule,
    "rule": _read_our_rule,
}
"""What reads one entry of each list that a configuration file may hold."""
