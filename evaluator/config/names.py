"""Names of rule configurations, and of the folders that their findings are written to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from evaluator.config.request import RuleRequest
from evaluator.errors import Mistake
from evaluator.rule import Rule

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_RESERVED = frozenset({".", "..", ".lock", "checkpoint", "status.json", "findings.jsonl"})
"""What has a meaning of its own in the output folder."""

_LONGEST = 200
"""Bytes; file systems allow 255, and temporary names need some."""


def assign_names(requests: Sequence[tuple[RuleRequest, Rule]]) -> tuple[list[str], list[Mistake]]:
    """A name for each configuration: its own, else the rule's name, NAME-2, NAME-3, ..."""
    mistakes: list[Mistake] = []
    taken: dict[str, str] = {}
    for request, _ in requests:
        if request.name is None:
            continue
        if not request.name.strip():
            mistakes.append(Mistake(request.where, "the name of the configuration is empty", "leave it out or name it"))
        elif request.name in taken:
            right = f"names are unique; {taken[request.name]} has it too"
            mistakes.append(Mistake(request.where, f"configuration name {request.name!r} is given twice", right))
        taken.setdefault(request.name, request.where)
    names: list[str] = []
    for request, rule in requests:
        name = _free(rule.name, taken) if request.name is None else request.name
        taken.setdefault(name, request.where)
        names.append(name)
    return names, mistakes


def folder_name(configuration_name: str) -> str:
    """The folder of a configuration: its name, percent-encoded, and never a name that has another meaning."""
    encoded = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in _bytes(configuration_name))
    if encoded.lower() in _RESERVED:
        return f"%{ord(encoded[0]):02X}" + encoded[1:].replace(".", "%2E")
    if len(encoded) > _LONGEST:
        mark = "-" + hashlib.sha256(_bytes(configuration_name)).hexdigest()[:16]
        return re.sub(r"%[0-9A-F]?$", "", encoded[: _LONGEST - len(mark)]) + mark
    return encoded


def _bytes(text: str) -> bytes:
    # Arguments and JSON may hold halves of surrogate pairs, which plain UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")


def _free(name: str, taken: Mapping[str, str]) -> str:
    number = 1
    while (candidate := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return candidate
