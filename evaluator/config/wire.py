"""Turns values as they come (strings, JSON, TOML) into what a model's fields are declared as."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_LISTS = (tuple, list, set, frozenset)
_EXPECTED = {
    "float": "a number",
    "int": "a whole number",
    "bool": "True or False",
    "string": "text",
    "tuple": "a comma-separated list",
    "list": "a comma-separated list",
    "set": "a comma-separated list",
    "frozen_set": "a comma-separated list",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


class _DoesNotFit(ValueError):
    """Holds what would have fitted."""


@dataclass(frozen=True)
class Unfit:
    """A value that its field cannot take, and what it could; no field when the values do not go together."""

    field: str | None
    value: object
    expected: str


def is_unset(value: object) -> bool:
    """Whether a value says "not given": the strings "None" and "", and null.

    Source:
        samples of AWS's guide send `"tensor_regex": ""` and document defaults as the string "None"
        (builtin-rules.md 1.3).
    """
    return value is None or (isinstance(value, str) and value.strip() in ("", "None"))


def read_model(model: type[M], given: Mapping[str, object]) -> tuple[M | None, list[Unfit]]:
    """The model with these values, or everything that does not fit; `given` has names of fields only."""
    values: dict[str, object] = {}
    unfit: list[Unfit] = []
    for name, value in given.items():
        try:
            values[name] = convert(_annotation(model, name), value)
        except _DoesNotFit as problem:
            unfit.append(Unfit(name, value, _with_default(model, name, str(problem))))
    try:
        whole = model.model_validate(values)
    except ValidationError as error:
        named = {problem.field for problem in unfit}
        # With values left out, what it says about missing ones and about the model as a whole means nothing.
        more = [one for one in _unfit(model, given, error) if not unfit or (one.field and one.field not in named)]
        return None, unfit + more
    return (None, unfit) if unfit else (whole, [])


def convert(annotation: Any, value: object) -> object:
    """The value in a form that pydantic takes for this annotation, or the value itself."""
    if isinstance(value, str):
        value = value.strip()
    for arm in _arms(annotation):
        converted = _convert_to(arm, value)
        if converted is not None:
            return converted
    return value


def plain(value: object) -> object:
    """The value as JSON knows it, sets in a stable order."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    # a default of a user's own constructor may be anything
    return value if isinstance(value, str | int | float | dict | None) else repr(value)


def _convert_to(arm: Any, value: object) -> object | None:
    origin = get_origin(arm) or arm
    if origin in _LISTS:
        return _to_list(arm, value)
    if origin is Literal:
        return next((choice for choice in get_args(arm) if str(choice).lower() == str(value).lower()), None)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return next((member for member in origin if member.name.lower() == str(value).lower()), None)
    if origin is bool:
        return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None
    if origin in (int, float):
        return _to_number(origin, value)
    return None


def _to_list(arm: Any, value: object) -> list[object]:
    items: list[object]
    if isinstance(value, str):
        items = [item.strip() for item in value.split(",") if item.strip()]
    else:
        items = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    inner = [argument for argument in get_args(arm) if argument is not Ellipsis] or [str]
    return [convert(inner[min(place, len(inner) - 1)], item) for place, item in enumerate(items)]


def _to_number(kind: type[int | float], value: object) -> int | float | None:
    wanted = "a whole number" if kind is int else "a number"
    if isinstance(value, bool):
        raise _DoesNotFit(wanted)
    if not isinstance(value, str | int | float):
        return None
    try:
        if kind is int and not isinstance(value, float):
            return int(value)
    except ValueError:
        pass  # "10.0" is a whole number too
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if math.isnan(number):
        raise _DoesNotFit(wanted)  # nothing is ever above or below NaN, so no condition with it could be met
    if kind is float:
        return number
    return int(number) if number.is_integer() else None


def _arms(annotation: Any) -> list[Any]:
    """The types a value may have, without None and without what pydantic attaches to them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _arms(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [inner for arm in get_args(annotation) for inner in _arms(arm)]
    return [] if annotation is type(None) else [annotation]


def _annotation(model: type[BaseModel], name: str) -> Any:
    return model.model_fields[name].annotation


def _unfit(model: type[BaseModel], given: Mapping[str, object], error: ValidationError) -> list[Unfit]:
    found: dict[str | None, Unfit] = {}
    for detail in error.errors(include_url=False):
        name = str(detail["loc"][0]) if detail["loc"] else None
        expected = _expected(detail)
        if name is None:
            found.setdefault(None, Unfit(None, None, expected))
        else:
            found.setdefault(name, Unfit(name, given.get(name), _with_default(model, name, expected)))
    return list(found.values())


def _expected(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"a number {words} {context[key]}"
    if kind == "finite_number":
        return "a finite number"
    if kind in ("literal_error", "enum"):
        return f"one of {context['expected']}"
    if kind == "value_error":
        return str(context["error"])
    base = re.sub(r"_(parsing|parsing_size|from_float|type)$", "", kind)
    return _EXPECTED.get(base, detail["msg"][:1].lower() + detail["msg"][1:])


def _with_default(model: type[BaseModel], name: str, expected: str) -> str:
    field = model.model_fields[name]
    if field.is_required() or field.default_factory is not None or field.default is None:
        return expected
    return f"{expected} (default: {plain(field.default)})"
