"""Reads configuration files, JSON or TOML, in SageMaker's shape or in ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluator.config.actions import read_action
from evaluator.config.naming import read_naming
from evaluator.config.parsing import parse_location
from evaluator.config.request import ActionRequest, RuleFile, RuleRequest
from evaluator.config.rule_files import beside, file_rule_name, parse_file_location
from evaluator.config.sagemaker_shape import request_of
from evaluator.errors import Mistake, did_you_mean
from evaluator.scalar_names import Naming

_MISSPELLED = "DebugRulesConfigurations"
"""As AWS's guide writes it in its samples (processing-contract.md 2.2)."""

_LONGEST_NAME = 256
"""Characters (processing-contract.md 1)."""

_BESIDE = frozenset({"DebugHookConfig", "ProfilerConfig", "TensorBoardOutputConfig"})
"""What stands beside the lists in CreateTrainingJob (processing-contract.md 1)."""

_ABOUT = ("use", "file", "sha256", "name")
"""What an entry of our shape says besides parameters."""

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
    """What one configuration file holds; with mistakes, everything that could still be understood.

    Args:
        folder: that relative paths in it start from.
    """

    folder: Path = field(default_factory=Path)
    requests: list[RuleRequest] = field(default_factory=list)
    actions: list[ActionRequest] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    naming: Naming | None = None
    notes: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


_Reader = Callable[[Mapping[str, object], str, FileContent], None]


def read_config_file(location: str) -> FileContent:
    """The content of the file at a local path, a file:// or an s3:// URI."""
    content = FileContent()
    folder, document = parse_location(location)
    if isinstance(document, Mistake):
        content.mistakes.append(document)
    elif not isinstance(document, dict):
        what = f"holds a {type(document).__name__}, not named parts"
        content.mistakes.append(Mistake(location, what, 'expected {"DebugRuleConfigurations": [...]} or our own shape'))
    else:
        content.folder = folder or content.folder
        _read_document(document, location, content)
    return content


def _read_document(document: Mapping[str, object], where: str, content: FileContent) -> None:
    for key, value in document.items():
        place = f"{where}: {key}"
        if key in _READERS:
            _each(value, place, content, _READERS[key])
        elif key == "settings":
            content.settings.update(_table(value, place, content))
        elif key == "names":
            content.naming, wrong = read_naming(_table(value, place, content), place)
            content.mistakes += wrong
        elif key == "labels":
            _read_labels(_table(value, place, content), place, content)
        elif key == _MISSPELLED:
            right = "write 'DebugRuleConfigurations' (AWS's guide has this misspelling)"
            content.mistakes.append(Mistake(where, f"{key!r} is not known", right))
        elif key in _BESIDE:
            content.notes.append(f"{where}: {key!r} is for the training job and is not used here")
        else:
            content.mistakes.append(
                Mistake(where, f"{key!r} is not known", did_you_mean(key, [*_READERS, "settings", "labels", "names"]))
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
        content.requests.append(_placed(request, content.folder))
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


def _placed(request: RuleRequest, folder: Path) -> RuleRequest:
    """The request, its rule file found from the folder of the configuration file."""
    file = request.file
    return request if file is None else replace(request, file=replace(file, path=beside(file.path, folder)))


def _read_our_rule(entry: Mapping[str, object], where: str, content: FileContent) -> None:
    asked = _asked_for(entry, where)
    if isinstance(asked, list):
        content.mistakes += asked
        return
    use, file = asked
    name = entry.get("name")
    if name is not None and not isinstance(name, str):
        content.mistakes.append(Mistake(where, f"'name' is {name!r}", "expected text"))
        name = None
    parameters = {key: value for key, value in entry.items() if key not in _ABOUT}
    request = RuleRequest(use, parameters, "ours", f"{where} {name or use}", name, file)
    content.requests.append(_placed(request, content.folder))


def _read_our_action(entry: Mapping[str, object], where: str, content: FileContent) -> None:
    action = read_action(entry, where, content.mistakes)
    if action is not None:
        content.actions.append(action)


def _asked_for(entry: Mapping[str, object], where: str) -> tuple[str, RuleFile | None] | list[Mistake]:
    """What the rule is called, and the file that it is in where there is one."""
    mistakes: list[Mistake] = []
    use, location, digest = entry.get("use"), entry.get("file"), entry.get("sha256")
    if digest is not None and location is None:
        mistakes.append(Mistake(where, "'sha256' is given without 'file'", "it is the sha256 of a rule file"))
    if digest is not None and not isinstance(digest, str):
        mistakes.append(Mistake(where, f"'sha256' is {digest!r}", "expected 64 hexadecimal digits"))
    if use is not None and location is not None:
        what = "'use' and 'file' are given"
        mistakes.append(Mistake(where, what, "use names a built-in rule, file is one of your own: give one of them"))
    elif location is not None:
        parts = parse_file_location(location.strip()) if isinstance(location, str) else None
        if parts is None or (parts[1] is not None and not parts[1].isidentifier()):
            right = 'expected a Python file, for example file = "rules/mine.py" or file = "rules/mine.py:MyRule"'
            mistakes.append(Mistake(where, f"'file' is {location!r}", right))
        elif not mistakes:
            file = RuleFile(*parts, sha256=digest.strip().lower() if isinstance(digest, str) else None)
            return file_rule_name(file), file
    elif not isinstance(use, str) or not use.strip():
        what = "'use' is missing" if use is None else f"'use' is {use!r}"
        right = 'the name of a rule, for example use = "VanishingGradient", or file = "rules/mine.py"'
        mistakes.append(Mistake(where, what, right))
    return mistakes or (str(use).strip(), None)


def _table(value: object, where: str, content: FileContent) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    content.mistakes.append(Mistake(where, f"is {value!r}", "expected a table of names and values"))
    return {}


_READERS: dict[str, _Reader] = {
    "DebugRuleConfigurations": _read_debug_rule,
    "ProfilerRuleConfigurations": _read_profiler_rule,
    "rule": _read_our_rule,
    "action": _read_our_action,
}
"""What reads one entry of each list that a configuration file may hold."""
