"""The grammar of `--rule NAME[:key=value,...]` and of `--rule-file WHERE.py[:NAME][:key=value,...]`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from evaluator.config.request import RuleFile, RuleRequest
from evaluator.config.rule_files import file_rule_name, parse_file_location
from evaluator.errors import Mistake

_KEY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=")
_NEXT = re.compile(r",(?=\s*[A-Za-z_][A-Za-z0-9_]*=)")
_FORM = "the form is NAME:key=value,key=value"
_FILE_FORM = "the form is WHERE.py[:NAME][:key=value,key=value]"


def parse_rule_argument(text: str, option: str = "--rule", form: str = _FORM) -> RuleRequest | Mistake:
    """What one `--rule`, or another option of the same grammar, asks for.

    NAME ends at the first colon. A comma ends a value only if `identifier=` follows (after blanks, where there are
    any), so a list needs no quotes. A value that starts with a double quote is a JSON string.
    """
    use, colon, rest = text.partition(":")
    use = use.strip()
    where = f"{option} {text!r}"
    if not use:
        return Mistake(where, f"has no {'rule ' if option == '--rule' else ''}name", form)
    parameters = _parameters(rest, where, option, form) if colon else {}
    if isinstance(parameters, Mistake):
        return parameters
    name = parameters.pop("name", None)
    return RuleRequest(use, parameters, "command line", use, None if name is None else str(name))


def parse_rule_file_argument(text: str) -> RuleRequest | Mistake:
    """What one `--rule-file` asks for.

    WHERE ends at the first .py that a colon or the end follows. What comes then is NAME, unless it is key=value.
    """
    where = f"--rule-file {text!r}"
    parts = parse_file_location(text.strip())
    if parts is None:
        return Mistake(where, "names no file that ends in .py", _FILE_FORM)
    location, rest = parts
    rule = None
    parameters: dict[str, object] | Mistake = {}
    if rest is not None and not _KEY.match(rest):
        rule, colon, rest = (part.strip() for part in rest.partition(":"))
        if not rule.isidentifier():
            return Mistake(where, f"has {rule!r} where the name of a class or RULE should stand", _FILE_FORM)
        rest = rest if colon else None
    if rest is not None:
        parameters = _parameters(rest, where, "--rule-file", _FILE_FORM)
    if isinstance(parameters, Mistake):
        return parameters
    name = parameters.pop("name", None)
    file = RuleFile(location, rule)
    asked = location if rule is None else f"{location}:{rule}"
    return RuleRequest(
        file_rule_name(file),
        parameters,
        "command line",
        f"--rule-file {asked}",
        None if name is None else str(name),
        file,
    )


def _parameters(text: str, where: str, option: str, form: str) -> dict[str, object] | Mistake:
    """The parameters in key=value,key=value."""
    parameters: dict[str, object] = {}
    try:
        for key, value in _pairs(text):
            if key in parameters:
                return Mistake(where, f"parameter {key!r} is given twice", f"give it once, or give {option} twice")
            parameters[key] = value
    except _NotInForm as problem:
        return Mistake(where, str(problem), problem.would_be_right or form)
    return parameters


class _NotInForm(ValueError):
    """The text does not follow the grammar."""

    def __init__(self, what: str, would_be_right: str = "") -> None:
        super().__init__(what)
        self.would_be_right = would_be_right


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while True:
        key = _KEY.match(text, position)
        if key is None:
            raise _NotInForm(f"has {text[position:]!r} where key=value should stand")
        if text.startswith('"', key.end()):
            value, position = _json_string(text, key)
        else:
            end = _NEXT.search(text, key.end())
            position = end.start() if end else len(text)
            value = text[key.end() : position]
        yield key[1], value
        if position == len(text):
            return
        position += 1


def _json_string(text: str, key: re.Match[str]) -> tuple[str, int]:
    """The JSON string after a key, and where it ends."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, key.end())
    except ValueError as error:
        right = 'a value that starts with " is a JSON string: end it with ", and write \\ as \\\\'
        raise _NotInForm(f"parameter {key[1]!r} has {text[key.end() :]!r}, which is no JSON string", right) from error
    if end != len(text) and not _NEXT.match(text, end):
        raise _NotInForm(f"has {text[end:]!r} after the value of {key[1]!r}", "a comma and key=value may follow")
    return str(value), int(end)
