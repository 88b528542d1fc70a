"""Which steps a trial has, in which mode, and how far they are complete.

Source:
    saved-format.md, section 11.2 to 11.4; where the reference is wrong we are not: smdebug-review.md, R3, R4 and R5.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from evaluator.sources.base import StepFile
from evaluator.user_rules.modes import ModeKeys, StepState


class StepBook:
    """The step files of a run, by step and worker; files are only added or replaced."""

    def __init__(self) -> None:
        """No step yet."""
        self.files: dict[int, dict[str, Sequence[StepFile]]] = {}
        self.workers: dict[int, set[str]] = {}
        self.mode_of: dict[int, tuple[ModeKeys, int]] = {}
        """Global step -> mode and mode step."""
        self.global_of: dict[ModeKeys, dict[int, int]] = {}
        """Mode -> mode step -> global step; GLOBAL is not in it."""
        self.log: list[StepFile] = []
        """Every file in the order in which it came, so that others can follow without searching."""
        self.names: dict[str, None] = {}
        self.last_complete = -1
        self.token_step: int | None = None
        """The last step that was complete before the run ended."""
        self.ended = False
        self._order: list[int] = []
        self._mode_orders: dict[ModeKeys, list[int]] = {}

    def take(self, saved: Sequence[StepFile]) -> None:
        """Add what one worker saved at one step."""
        step, worker = saved[0].step, saved[0].worker
        if step not in self.files:
            insort(self._order, step)
        self.files.setdefault(step, {})[worker] = saved
        self.workers.setdefault(step, set()).add(worker)
        self.log.extend(saved)
        for file in saved:
            mode = ModeKeys(int(file.mode))
            self.mode_of[step] = (mode, file.mode_step)
            if mode is not ModeKeys.GLOBAL:
                self.global_of.setdefault(mode, {})[file.mode_step] = step
                self._mode_orders.pop(mode, None)
            self.names.update(dict.fromkeys(file.layout.at))

    def settle(self, num_workers: int, settled: int, window: int) -> None:
        """Find the last complete step anew.

        Args:
            num_workers: how many workers save.
            settled: a step up to which nobody is waited for any more.
            window: so many steps beyond the last complete one make half of them count as complete.
        """
        before = self.last_complete
        beyond = bisect_right(self._order, self.last_complete)
        for at in range(len(self._order) - 1, beyond - 1, -1):
            step = self._order[at]
            if step <= settled or len(self.workers[step]) >= num_workers:
                self.last_complete = step
                break
        beyond = bisect_right(self._order, self.last_complete)
        if len(self._order) - beyond > window:
            # At most once in a refresh, and counted in saved steps, whatever their distance.
            self.last_complete = self._order[beyond + max(window // 2, 1) - 1]
        if self.last_complete > before:
            self.token_step = self.last_complete

    def end(self) -> None:
        """Nothing more comes: what is there is all there is."""
        self.ended = True
        self.last_complete = max(self.last_complete, *self._order[-1:], -1)

    def steps(self, mode: ModeKeys | None, *, incomplete: bool) -> list[int]:
        """The steps of a mode, as mode steps; for GLOBAL those of all modes, as global steps."""
        order = self._in_order(mode)
        if mode is ModeKeys.GLOBAL:
            return list(order if incomplete else order[: bisect_right(order, self.last_complete)])
        if mode is None or incomplete:
            return list(order)
        global_of = self.global_of.get(mode, {})
        return [step for step in order if global_of[step] <= self.last_complete]

    def is_complete(self, step: int) -> bool:
        """Whether a global step that is there will not get anything more."""
        return step <= self.last_complete

    def global_step(self, mode: ModeKeys, step: int) -> int | None:
        """The global step of a step of a mode."""
        return step if mode is ModeKeys.GLOBAL else self.global_of.get(mode, {}).get(step)

    def state(self, step: int, mode: ModeKeys) -> StepState:
        """Whether a step of a mode is there, will never be, or may still come.

        Source:
            the table in saved-format.md, section 11.3.
        """
        order = self._in_order(mode)
        at = bisect_left(order, step)
        if at == len(order):
            return StepState.UNAVAILABLE if self.ended else StepState.NOT_YET_AVAILABLE
        following = self.global_step(mode, order[at])
        passed = self.ended or (following is not None and self.is_complete(following))
        if not passed:
            return StepState.NOT_YET_AVAILABLE
        return StepState.AVAILABLE if order[at] == step else StepState.UNAVAILABLE

    def _in_order(self, mode: ModeKeys | None) -> list[int]:
        if mode is ModeKeys.GLOBAL:
            return self._order
        if mode is None or mode not in self.global_of:
            return []
        order = self._mode_orders.get(mode)
        if order is None:
            order = self._mode_orders[mode] = sorted(self.global_of[mode])
        return order
