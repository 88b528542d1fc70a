"""The rule files that a configuration names, so that they can go along with it to S3."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.config.rule_files import fetch_rule_file, parse_file_location
from evaluator.config.sagemaker_shape import SOURCE_KEY


@dataclass(frozen=True)
class RuleFilePlace:
    """Where a document names a rule file."""

    holder: dict[str, Any]
    key: str
    location: str
    rest: str = ""

    @property
    def name(self) -> str:
        """How the file is called among the objects of the job: two may have the same name in different folders."""
        mark = hashlib.sha256(self.location.encode()).hexdigest()[:8]
        return f"{mark}/{Path(self.location).name}"

    def put(self, location: str) -> None:
        """Name it there."""
        self.holder[self.key] = location + self.rest


def files_of(document: Mapping[str, Any]) -> Iterator[RuleFilePlace]:
    """The places in a document where rule files are named."""
    for entry in document.get("rule", []):
        parts = parse_file_location(str(entry.get("file", "")).strip())
        if parts is not None:
            yield RuleFilePlace(entry, "file", parts[0], "" if parts[1] is None else f":{parts[1]}")
    for entry in document.get("DebugRuleConfigurations", []):
        parameters = entry.get("RuleParameters") or {}
        if parameters.get(SOURCE_KEY):
            yield RuleFilePlace(parameters, SOURCE_KEY, str(parameters[SOURCE_KEY]).strip())


def local_files(document: Mapping[str, Any]) -> tuple[dict[str, bytes], list[str]]:
    """Name -> content of the rule files that are on this machine only, and what to know of them."""
    files: dict[str, bytes] = {}
    notes: list[str] = []
    for entry in files_of(document):
        if entry.location.startswith("s3://"):
            continue
        path = fetch_rule_file(entry.location)
        if isinstance(path, Path):
            files[entry.name] = path.read_bytes()
            notes.append(f"{entry.location} goes along alone: what it imports from its folder does not")
    return files, list(dict.fromkeys(notes))
