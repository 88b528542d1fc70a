"""One tensor of a trial: at which steps it was saved, and its values, reductions and shapes there.

Source:
    smdebug-api.md, section 7; results compared with smdebug 1.0.34 by `make conformance`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from evaluator.formats.reduction_names import REDUCTIONS
from evaluator.segments import Array
from evaluator.sources.base import SHAPE, VALUE, StepFile
from evaluator.user_rules.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
    TensorUnreadable,
)
from evaluator.user_rules.modes import ModeKeys, StepState
from evaluator.user_rules.reductions import get_numpy_reduction
from evaluator.user_rules.single import single
from evaluator.user_rules.values import Unreadable

if TYPE_CHECKING:
    from evaluator.user_rules.trial import Trial


class Tensor:
    """A tensor, asked by step: of all modes together (GLOBAL), or counted within one mode."""

    def __init__(self, name: str, trial: Trial, cache: bool = False) -> None:
        """Nothing is read yet."""
        self.name = name
        self.trial = trial
        self.cache = cache
        self._steps: list[int] = []
        self._followed = 0

    @property
    def original_name(self) -> str | None:
        """The framework's name where a shape was saved: as far as readers tell it here, the name itself."""
        shaped = (file for step in self._global_steps() for file in self._files(step, ModeKeys.GLOBAL))
        return self.name if any(SHAPE in file.layout.at[self.name] for file in shaped) else None

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """The steps at which anything of the tensor was saved: those of `trial.steps(mode)` that have it."""
        self.trial.maybe_refresh(self.name)
        book = self.trial.book
        have = self._global_steps()
        if not show_incomplete_steps:
            have = have[: bisect_right(have, book.last_complete)]
        if mode is ModeKeys.GLOBAL:
            return list(have)
        found = {
            file.mode_step
            for step in have
            for saved in book.files[step].values()
            for file in saved
            if int(file.mode) == mode.value
            and self.name in file.layout.at
            and book.global_step(mode, file.mode_step) == step
        }
        return sorted(found)

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> Array:
        """The value at a step, an array of the caller's own.

        Args:
            step_num: the step, counted within the mode.
            mode: GLOBAL counts the steps of all modes.
            worker: whose value; None is the first one, by name, that saved the tensor at the step.

        Raises:
            StepUnavailable: the step was not saved.
            StepNotYetAvailable: it may still come.
            TensorUnavailableForStep: the step is there without this value.
            InvalidWorker: the worker did not save the tensor at the step.
        """
        file = self._file(step_num, mode, worker)
        kinds = file.layout.at[self.name]
        if VALUE not in kinds:
            reduced = not REDUCTIONS.isdisjoint(kinds)
            raise TensorUnavailableForStep(self.name, step_num, mode, has_reductions=reduced)
        return self._read(file, VALUE, step_num, mode)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, Array]:
        """Step -> value, for all steps of a mode that have the tensor."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - the API's
    ) -> Any:
        """The saved reduction, for which the value is not read; else one that is computed from the value.

        Args:
            step_num: the step, counted within the mode.
            reduction_name: min, max, mean, std, variance, sum, prod, l1 or l2.
            mode: GLOBAL counts the steps of all modes.
            worker: as for `value`.
            abs: whether of the magnitudes.
        """
        file = self._file(step_num, mode, worker)
        kinds = file.layout.at[self.name]
        kind = f"abs_{reduction_name}" if abs else reduction_name
        if kind in REDUCTIONS and kind in kinds:
            return self._read(file, kind, step_num, mode)
        if VALUE not in kinds:
            # the reference names the reduction here (smdebug-api.md, section 4)
            raise TensorUnavailableForStep(reduction_name, step_num, mode)
        return get_numpy_reduction(reduction_name, self._look(file, VALUE, step_num, mode), abs)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Array]:
        """(name, whether of the magnitudes) -> value, of the saved reductions only."""
        file = self._file(step_num, mode, worker)
        return {
            (kind.removeprefix("abs_"), kind.startswith("abs_")): self._read(file, kind, step_num, mode)
            for kind in file.layout.at[self.name]
            if kind in REDUCTIONS
        }

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> tuple[int, ...]:
        """The saved shape, else that of the value."""
        file = self._file(step_num, mode, worker)
        kinds = file.layout.at[self.name]
        if SHAPE in kinds and self.name in file.shapes:
            return tuple(file.shapes[self.name])
        if VALUE not in kinds:
            raise ShapeUnavailableForStep(self.name, step_num, mode)
        return self._look(file, VALUE, step_num, mode).shape

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """The workers that saved the tensor at the step."""
        found = [file.worker for file in self._files(step_num, mode)]
        if not found:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return list(dict.fromkeys(found))

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """The last `n` steps up to this one, itself included; all of them without `n`."""
        steps = self.steps(mode)
        earlier = steps[: bisect_right(steps, step)]
        return earlier[-n:] if n else earlier

    def step(self, *_: object, **__: object) -> NoReturn:
        """Removed from the API in 2019."""
        raise SMDebugNotImplementedError(
            "step method has been removed. Please use tensor.value or tensor.reduction_value methods"
        )

    def file_to_fetch(self, step_num: int) -> tuple[StepFile, list[int]]:
        """The file that has this tensor at a global step, and where: its value, or else its reductions.

        Raises:
            TensorUnavailableForStep: the step is there without the tensor; and as `value` does.
        """
        file = self._file(step_num, ModeKeys.GLOBAL, None)
        kinds = file.layout.at[self.name]
        wanted = [VALUE] if VALUE in kinds else REDUCTIONS.intersection(kinds)
        return file, [kinds[kind] for kind in wanted]

    def _global_steps(self) -> list[int]:
        """The global steps that have the tensor, in order; brought up to date from what came since."""
        log = self.trial.book.log
        for at in range(self._followed, len(log)):
            file = log[at]
            if self.name not in file.layout.at:
                continue
            place = bisect_right(self._steps, file.step)
            if not place or self._steps[place - 1] != file.step:
                insort(self._steps, file.step)
        self._followed = len(log)
        return self._steps

    def _files(self, step_num: int, mode: ModeKeys) -> Iterator[StepFile]:
        """The files that have the tensor at the step, workers in the order of their names."""
        book = self.trial.book
        step = book.global_step(mode, step_num)
        saved = book.files.get(step, {}) if step is not None else {}
        for worker in sorted(saved):
            for file in saved[worker]:
                if self.name in file.layout.at and (mode is ModeKeys.GLOBAL or int(file.mode) == mode.value):
                    yield file

    def _file(self, step_num: int, mode: ModeKeys, worker: str | None) -> StepFile:
        """The file to read from."""
        found = list(self._files(step_num, mode))
        if not found:
            # what is in memory is final, as for the reference; only what is not there is looked for
            self.trial.maybe_refresh(self.name)
            found = list(self._files(step_num, mode))
        if not found:
            self._refuse(step_num, mode)
        for file in found:
            if worker is None or file.worker == worker:
                return file
        raise InvalidWorker(str(worker))

    def _refuse(self, step_num: int, mode: ModeKeys) -> NoReturn:
        state = self.trial.has_passed_step(step_num, mode)
        if state is StepState.UNAVAILABLE:
            raise StepUnavailable(step_num, mode)
        if state is StepState.NOT_YET_AVAILABLE:
            raise StepNotYetAvailable(step_num, mode)
        raise TensorUnavailableForStep(self.name, step_num, mode)

    def _look(self, file: StepFile, kind: str, step_num: int, mode: ModeKeys) -> Array:
        """What is saved, to be looked at only."""
        try:
            return self.trial.saved_values.get(file, file.layout.at[self.name][kind])
        except Unreadable as error:
            raise TensorUnreadable(self.name, step_num, mode, str(error)) from error

    def _read(self, file: StepFile, kind: str, step_num: int, mode: ModeKeys) -> Array:
        """What is saved, as an array of the caller's own; with `cache` the same one each time."""
        array = self._look(file, kind, step_num, mode)
        if self.cache:
            return self.trial.saved_values.own(file, file.layout.at[self.name][kind])
        return single(array.copy())
