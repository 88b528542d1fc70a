"""Makes the record of a condition that was met out of what the condition said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from evaluator.config.parameters import RuleConfiguration
from evaluator.finding import Affected, Finding, ModeName, Worst, finding_id
from evaluator.formats.key_names import natural_key
from evaluator.series import Series
from evaluator.window import Column, Decided, Met, NotYet, ProgressView, Verdict, Window, mode_name
from evaluator.window import State as StateView

_PLACE_HOLDER = re.compile(r"\{(tensor|worker|measured|limit|tensors|of)\}")


@dataclass(slots=True)
class Moment:
    """The step that is judged: its number, and what tells per (worker, mode) the mode step."""

    step: int
    mode_steps: Callable[[], Mapping[tuple[str, int], int]] = dict
    updated: frozenset[Series] = frozenset()
    """The series that have a row of this step."""
    kind: Literal["step", "idle", "end"] = "step"


def make_finding(
    met: Met, configuration: RuleConfiguration, moment: Moment, order: Mapping[str, int], last_healthy: int | None
) -> Finding:
    """The finding of a condition that was met; it names the first column in the order of the tensors."""
    columns = columns_of(met)
    measured = np.atleast_1d(np.asarray(met.measured, dtype=np.float64))
    tensor = worker = None
    mode: ModeName | None = None
    mode_step: int | None = None
    first = 0
    if columns:
        first = min(range(len(columns)), key=lambda at: _place(columns[at], order))
        tensor, worker = columns[first].tensor or None, columns[first].worker
        code, of_this_step = _mode_of(met, first)
        if code:
            mode = cast("ModeName", mode_name(code))
            mode_step = moment.mode_steps().get((worker, code)) if of_this_step else None
    value = float(measured[first]) if len(measured) else None
    limit = _limit_of(met, first)
    affected = _affected(met, columns, measured, value, limit)
    if met.last_healthy is not None:
        last_healthy = met.last_healthy if met.last_healthy >= 0 else None
    told = {"tensor": tensor, "worker": worker, "measured": value, "limit": limit}
    return Finding(
        id=finding_id(configuration.name, moment.step, worker, tensor),
        severity=configuration.severity,
        rule_configuration=configuration.name,
        rule=configuration.rule.name,
        step=moment.step,
        mode=mode,
        mode_step=mode_step,
        worker=worker,
        tensor=tensor,
        measured=value,
        limit=limit,
        affected=affected,
        last_healthy_step=last_healthy,
        message=_message(met.message, {**told, "tensors": affected.tensors, "of": affected.of}),
        parameters=configuration.parameters.model_dump(mode="json"),
        details={**met.details, **{name: values[first].item() for name, values in met.each.items() if columns}},
    )


def checked(verdict: Verdict) -> Verdict:
    """What a condition returned, if it is what a condition may return: anything else must end that rule only."""
    if isinstance(verdict, Met):
        columns, known = len(verdict.columns), len(verdict.window.columns) if verdict.window is not None else 0
        if columns and (int(np.max(verdict.columns)) >= known or np.shape(verdict.measured) != (columns,)):
            raise TypeError(f"a Met has one measured value for each of its {columns} columns, of {known} in its window")
    elif verdict is not None and not isinstance(verdict, Decided | NotYet):
        raise TypeError(f"a condition returns None, Met, Decided or NotYet; got {verdict!r}")
    return verdict


def columns_of(met: Met) -> list[Column]:
    """The columns that met the condition."""
    known = met.window.columns if met.window is not None else []
    return [known[at] for at in met.columns.tolist()]


def judged_columns(arguments: Iterable[Window | StateView | ProgressView]) -> list[Column]:
    """The columns that had a value at this step, in the first argument that has any."""
    for argument in arguments:
        if isinstance(argument, Window) and len(argument.steps):
            return [argument.columns[at] for at in np.flatnonzero(argument.modes[-1]).tolist()]
        if isinstance(argument, StateView):
            return [argument.columns[at] for at in np.flatnonzero(argument.row.modes).tolist()]
    return []


def _place(column: Column, order: Mapping[str, int]) -> tuple[int, object]:
    """Where a column stands in column order, which is where causes come before what they cause."""
    return order.get(column.tensor, len(order)), natural_key(column.worker)


def _mode_of(met: Met, at: int) -> tuple[int, bool]:
    """The mode of the value that one of the met columns is about (0: unknown), and whether it was saved just now."""
    column = int(met.columns[at])
    if isinstance(met.window, Window) and len(met.window.steps):
        codes = met.window.modes[:, column]
    elif isinstance(met.window, StateView) and column < len(met.window.row.modes):
        codes = met.window.row.modes[column : column + 1]
    else:
        return 0, False
    saved = codes[codes > 0]
    newest = int(saved[-1]) if len(saved) else 0
    code = newest if met.modes is None else int(met.modes[at])
    return code, code == int(codes[-1])


def _limit_of(met: Met, at: int) -> float | None:
    """The limit that one of the met columns was measured against."""
    return float(met.limit[at]) if isinstance(met.limit, np.ndarray) else met.limit


def _affected(
    met: Met, columns: list[Column], measured: np.ndarray[Any, Any], first: float | None, limit: float | None
) -> Affected:
    if not columns or first is None:
        return Affected(tensors=len(columns), of=max(met.of, len(columns)))
    worst = _worst(measured, limit, first)
    column = columns[worst]
    at = Worst(tensor=column.tensor or None, worker=column.worker, measured=float(measured[worst]))
    return Affected(tensors=len(columns), of=max(met.of, len(columns)), worst=at)


def _worst(measured: np.ndarray[Any, Any], limit: float | None, first: float) -> int:
    """The value furthest beyond the limit, on the side where the first one lies; NaN is beyond every limit."""
    if np.isnan(measured).any():
        return int(np.flatnonzero(np.isnan(measured))[0])
    below = limit is not None and first < limit
    return int(np.argmin(measured) if below else np.argmax(measured))


def _message(template: str, values: Mapping[str, object]) -> str:
    """The rule's own text with `{measured}` and the like filled in; without one, the numbers."""
    if not template:
        template = "measured {measured}" + ("" if values["limit"] is None else ", limit {limit}")
    return _PLACE_HOLDER.sub(lambda match: _told(values[match[1]]), template)


def _told(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
