"""When and what a hook saves: parts of a collections file that rule files may build, compare and print.

Source:
    smdebug-api.md, section 8; saved-format.md, section 2; texts compared with smdebug 1.0.34 by `make conformance`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evaluator.user_rules.exceptions import SMDebugTypeError, SMDebugValueError
from evaluator.user_rules.modes import ModeKeys

ALLOWED_REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]
ALLOWED_NORMS = ["l1", "l2"]

DEFAULT_SAVE_INTERVAL = 500


class SaveConfigMode:
    """At which steps of one mode something is saved."""

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        """Every `save_interval`-th step from `start_step` to before `end_step`, and each of `save_steps`."""
        self.save_interval = DEFAULT_SAVE_INTERVAL if save_interval is None else int(save_interval)
        self.save_steps = [] if save_steps is None else list(save_steps)
        self.start_step = 0 if start_step is None else int(start_step)
        self.end_step = None if end_step is None else int(end_step)
        if self.save_interval < 1:
            raise SMDebugValueError("save_interval must be 1 or more")

    def should_save_step(self, step_num: int) -> bool:
        """Whether the step is saved."""
        if step_num in self.save_steps:
            return True
        in_range = self.start_step <= step_num and (self.end_step is None or step_num < self.end_step)
        return in_range and step_num % self.save_interval == 0

    def to_json_dict(self) -> dict[str, Any]:
        """As it stands in a collections file."""
        return {
            "save_interval": self.save_interval,
            "save_steps": self.save_steps,
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any], default_values: Mapping[str, Any] | None = None) -> SaveConfigMode:
        """From the form of a collections file; other keys are ignored."""
        known = {**(default_values or {}), **params}
        return cls(*(known.get(key) for key in ("save_interval", "start_step", "end_step", "save_steps")))

    def __eq__(self, other: object) -> bool:
        """Whether they save the same steps."""
        return isinstance(other, SaveConfigMode) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        """All four parts."""
        parts = ", ".join(f"{key}={value}" for key, value in self.to_json_dict().items())
        return f"<class SaveConfig: {parts}>"


class SaveConfig:
    """At which steps something is saved, for each mode."""

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode] | None = None,
        save_interval: int | None = None,
        start_step: int | None = None,
        end_step: int | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        """The same for all modes, or one for each of some modes."""
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            self.mode_save_configs = {
                mode: SaveConfigMode(save_interval, start_step, end_step, save_steps) for mode in ModeKeys
            }
            return
        given = mode_save_configs.items()
        if not all(isinstance(mode, ModeKeys) and isinstance(one, SaveConfigMode) for mode, one in given):
            what = f"Each key,value in mode_save_configs={mode_save_configs}"
            raise SMDebugValueError(f"{what} must be of type ModeKey,SaveConfigMode")
        self.mode_save_configs = {mode: mode_save_configs.get(mode) for mode in ModeKeys}

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode | None:
        """That of one mode."""
        return self.mode_save_configs[mode]

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode) -> None:
        """Change that of one mode."""
        self.mode_save_configs[mode] = save_config_mode

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Whether a step of the mode is saved; never, where nothing is said about the mode."""
        of_mode = self.mode_save_configs[mode]
        return of_mode is not None and of_mode.should_save_step(step_num)

    def to_json_dict(self) -> dict[str, Any]:
        """As it stands in a collections file."""
        return {mode.name: one and one.to_json_dict() for mode, one in self.mode_save_configs.items()}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[Any, Any], default_values: Mapping[str, Any] | None = None) -> SaveConfig:
        """From mode (or its name) -> what is saved in it."""
        given: dict[ModeKeys, SaveConfigMode] = {}
        for key, value in params.items():
            mode = key if isinstance(key, ModeKeys) else ModeKeys.__members__.get(str(key))
            if mode is None:
                raise SMDebugValueError(f"{key!r} is not a mode; modes: {', '.join(ModeKeys.__members__)}")
            if value is not None:
                given[mode] = SaveConfigMode.from_dict(value, default_values)
        return cls(given)

    @classmethod
    def from_json(cls, json_str: str) -> SaveConfig:
        """From text."""
        return cls.from_dict(json.loads(json_str))

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> SaveConfig:
        """The same for all modes."""
        return cls(dict.fromkeys(ModeKeys, save_config_mode))

    @classmethod
    def parse(cls, obj: object) -> SaveConfig:
        """From whatever says it: nothing, one for all modes, one per mode, or itself."""
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, dict):
            plain = all(isinstance(key, ModeKeys) for key in obj) and all(
                isinstance(value, SaveConfigMode) for value in obj.values()
            )
            return cls(obj) if plain else cls.from_dict(obj)
        raise SMDebugTypeError(f"a SaveConfig cannot be made from {type(obj).__name__}")

    def __eq__(self, other: object) -> bool:
        """Whether they save the same steps."""
        return isinstance(other, SaveConfig) and self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        """That of each mode."""
        return f"<class SaveConfig: {self.mode_save_configs}>"


class ReductionConfig:
    """Which reductions of a tensor are saved, and whether the tensor or its shape is."""

    def __init__(
        self,
        reductions: Iterable[str] | None = None,
        abs_reductions: Iterable[str] | None = None,
        norms: Iterable[str] | None = None,
        abs_norms: Iterable[str] | None = None,
        save_raw_tensor: bool = False,
        save_shape: bool = False,
    ) -> None:
        """Reductions and norms, plain and of the absolute values."""
        self.reductions = _allowed(reductions, "reductions", ALLOWED_REDUCTIONS)
        self.abs_reductions = _allowed(abs_reductions, "abs_reductions", ALLOWED_REDUCTIONS)
        self.norms = _allowed(norms, "norms", ALLOWED_NORMS)
        self.abs_norms = _allowed(abs_norms, "abs_norms", ALLOWED_NORMS)
        self.save_raw_tensor = save_raw_tensor
        self.save_shape = save_shape

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> ReductionConfig:
        """From the form of a collections file, where norms are called l1_norm; other keys are ignored."""
        sorted_in: dict[tuple[bool, bool], list[str]] = {}
        for name in filter(None, (part.strip() for part in (params.get("reductions") or "").split(","))):
            plain = name.removeprefix("abs_")
            sorted_in.setdefault((plain != name, plain.endswith("_norm")), []).append(plain.removesuffix("_norm"))
        return cls(
            sorted_in.get((False, False)),
            sorted_in.get((True, False)),
            sorted_in.get((False, True)),
            sorted_in.get((True, True)),
            _flag(params.get("save_raw_tensor")),
            _flag(params.get("save_shape")),
        )

    @classmethod
    def from_json(cls, json_str: str) -> ReductionConfig:
        """From text."""
        return cls.from_dict(json.loads(json_str))

    def to_json_dict(self) -> dict[str, Any]:
        """As it stands in a collections file."""
        names = [
            *self.reductions,
            *(f"{name}_norm" for name in self.norms),
            *(f"abs_{name}" for name in self.abs_reductions),
            *(f"abs_{name}_norm" for name in self.abs_norms),
        ]
        saved = {"save_raw_tensor": self.save_raw_tensor, "reductions": ",".join(names)}
        return {**saved, "save_shape": self.save_shape}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_json_dict())

    def __eq__(self, other: object) -> bool:
        """Whether they save the same."""
        return isinstance(other, ReductionConfig) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        """All parts."""
        parts = ", ".join(f"{key}={getattr(self, key)}" for key in ("reductions", "abs_reductions", "norms"))
        tail = f"save_shape={self.save_shape}, save_raw_tensor={self.save_raw_tensor}"
        return f"<class ReductionConfig: {parts}, abs_norms={self.abs_norms}>, {tail}"


def _allowed(names: Iterable[str] | None, what: str, allowed: list[str]) -> list[str]:
    found = [] if names is None else list(names)
    if not set(found) <= set(allowed):
        raise SMDebugValueError(f"{what} can only be one of {','.join(allowed)}")
    return found


def _flag(value: object) -> bool:
    """A truth value, also written as text."""
    return value in {True, "true", "True"}
