"""For training scripts: writes named arrays as a trial folder, which this program and smdebug can read.

    with TrialWriter("/opt/ml/output/tensors", collections={"losses": ["loss"]}, keep_steps=1000) as writer:
        for step in range(100):
            writer.save(step, {"loss": np.float32(0.5)}, mode=Mode.TRAIN)
            if writer.should_stop:
                break

This one raises what goes wrong; in training scripts use `evaluator.safe_writer.SafeWriter`, which never does.

Source:
    saved format of smdebug 1.0.34, sections 1, 3 and 9 (what is published in which order).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluator.clock import Clock, SystemClock
from evaluator.errors import FormatError
from evaluator.formats.collection_file import SavedCollection, encode_collections
from evaluator.formats.event import encode_parts
from evaluator.formats.key_names import END_MARKER, collections_key, event_key, index_key
from evaluator.formats.reduction_names import reduction_name
from evaluator.formats.step_files import Payload, StepFiles
from evaluator.modes import Mode
from evaluator.saving.budget import Budget
from evaluator.saving.files import publish, remove
from evaluator.saving.stop_file import StopFile

CollectionSpec = Iterable[str] | Mapping[str, Iterable[str]]
"""The names of a collection's tensors, or an object with `tensor_names` and `include_regex`."""


class TrialWriter:
    """Writes what one worker saves; a step can be read as soon as `save` returns."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        worker: str = "worker_0",
        num_workers: int = 1,
        collections: Mapping[str, CollectionSpec] | None = None,
        keep_steps: int | None = None,
        keep_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is written yet; each of the `num_workers` workers has a writer and a name of its own.

        Args:
            folder: the trial's, made when it is not there.
            worker: the name of this process among those that save.
            num_workers: how many processes save into this folder.
            collections: name -> its tensors.
            keep_steps: so many of the last saved steps stay in the folder; all by default.
            keep_bytes: so many bytes of the last saved steps stay there, of all workers together; all by default.
            clock: the time that is written; the machine's by default.
        """
        self._clock = SystemClock() if clock is None else clock
        self._folder = Path(folder)
        self._worker = worker
        self._num_workers = num_workers
        self._collections = {name: _collection(name, spec) for name, spec in (collections or {}).items()}
        self._files = StepFiles(self._encoded)
        self._added: dict[str, SavedCollection] = {}
        """What was added last; adding it again makes no difference."""
        self._announced = False
        share = None if keep_bytes is None else max(1, operator.index(keep_bytes) // max(1, num_workers))
        self._budget = Budget(self._folder, worker, keep_steps=keep_steps, keep_bytes=share)
        self._stop = StopFile(self._folder, self._clock)

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; a run that failed, or that other workers may still be in, is not marked as ended."""
        self.close(end=kind is None and self._num_workers == 1)

    def save(
        self,
        step: int,
        values: Mapping[str, object],
        *,
        mode: Mode = Mode.GLOBAL,
        mode_step: int | None = None,
        reductions: Mapping[str, Mapping[str, object]] | None = None,
        shapes: Mapping[str, Iterable[int]] | None = None,
        wall_time: float | None = None,
    ) -> None:
        """Write what was saved at one step; saving a step again replaces what was there.

        Args:
            step: the global step, counted over all modes.
            values: name -> array or number; None for a tensor that is not there at this step.
            mode: what the script was doing.
            mode_step: the step within the mode; the global step when it is not given.
            reductions: tensor name -> name of the reduction -> its value, with or without the tensor itself.
            shapes: name -> shape, for tensors whose shape is saved.
            wall_time: seconds since the epoch; now when it is not given.

        Raises:
            FormatError: something cannot be written in this format; then nothing was written.
            OutputError: the step is larger than `keep_bytes`; then nothing was written.
            OSError: the folder cannot be written to; then the step is not there.
        """
        step = operator.index(step)
        if step < 0:
            raise FormatError("writer", f"step {step} cannot be saved", "0 or more")
        named = [(name, value) for name, value in values.items() if value is not None]
        for tensor, saved in (reductions or {}).items():
            named.extend((reduction_name(reduction, tensor), value) for reduction, value in saved.items())
        entries = tuple((name, name, tuple(int(size) for size in shape)) for name, shape in (shapes or {}).items())
        if not named and not entries:
            return
        within = step if mode_step is None else operator.index(mode_step)
        now = self._clock.now() if wall_time is None else wall_time
        how: dict[str, Any] = {"step": step, "mode": mode, "mode_step": within, "wall_time": now}
        parts, size, index_of = self._files.encode(named, entries, **how)
        if not parts and not entries:
            return
        key = event_key(step, self._worker) if parts else None
        index = index_of(key)
        self._budget.make_room(step, size + len(index))
        if not self._announced:
            self.write_collections()
        # A reader takes the index file as the sign that the event file is there.
        if key is not None:
            publish(self._folder, key, *parts)
        try:
            publish(self._folder, index_key(step, self._worker), index)
        except OSError:
            # no reader would find it, but the disk would hold it
            if key is not None:
                remove(self._folder, key)
            raise
        self._stop.found(now=True)

    @property
    def should_stop(self) -> bool:
        """Whether a file named STOP lies in the folder: looked at with each step that is saved, and once a second."""
        return self._stop.found()

    def collect(self, collections: Mapping[str, CollectionSpec]) -> None:
        """Add tensors to collections; the collections file is written anew, if that makes a difference, when a step is.

        Raises:
            FormatError: a collection is not as it should be.
        """
        for name, spec in collections.items():
            more = _collection(name, spec)
            if self._added.get(name) == more:
                continue  # a hook says the same at every step
            self._added[name] = more
            known = self._collections.get(name, SavedCollection(name))
            both = SavedCollection(
                name,
                tuple(dict.fromkeys([*known.include_regex, *more.include_regex])),
                tuple(dict.fromkeys([*known.tensor_names, *more.tensor_names])),
            )
            if both != known or name not in self._collections:
                self._collections[name] = both
                self._announced = False

    def write_collections(self) -> None:
        """Write the collections file; `save` does so before its first step, and `close` if it never did."""
        publish(self._folder, collections_key(self._worker), encode_collections(self._collections, self._num_workers))
        self._announced = True

    def close(self, *, end: bool = True) -> None:
        """Make the trial complete.

        Args:
            end: whether to mark the run as ended, for all of its workers.
        """
        if not self._announced:
            self.write_collections()
        if end:
            write_end_marker(self._folder)

    def _encoded(self, named: Iterable[tuple[str, object]], **of_the_step: Any) -> Iterator[tuple[str, Payload]]:
        """Each value as an event, under its name."""
        for name, value in named:
            yield name, encode_parts(name, value, **of_the_step)


def write_end_marker(folder: str | os.PathLike[str]) -> None:
    """Tell readers that no worker of this run will save anything more."""
    publish(Path(folder), END_MARKER, b"")


def _collection(name: str, spec: CollectionSpec) -> SavedCollection:
    """A collection as it is saved."""
    if isinstance(spec, str):
        raise FormatError(f"collection {name!r}", f"its tensors are {spec!r}", "a list of tensor names")
    if isinstance(spec, Mapping):
        return SavedCollection(name, tuple(spec.get("include_regex", ())), tuple(spec.get("tensor_names", ())))
    return SavedCollection(name, (), tuple(spec))
