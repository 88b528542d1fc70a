"""Source: what one format of saved runs must be able to tell, and the shapes it tells it in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluator.formats.collection_file import SavedCollection
from evaluator.modes import Mode
from evaluator.segments import Array, Segments
from evaluator.storage.base import Store

Positions = NDArray[np.int64]

VALUE = "value"
SHAPE = "shape"


@dataclass(frozen=True, eq=False)
class Layout:
    """What one worker saved together at a step, without where: one shared object per distinct list of entries.

    An entry is a tensor's value (`kinds` VALUE), one of its reductions (the reduction's name), or its shape (SHAPE).
    Entries stand in the order in which training saved them; no (name, kind) occurs twice.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @cached_property
    def at(self) -> Mapping[str, Mapping[str, int]]:
        """Tensor name -> kind -> position of that entry, tensors in the order of first appearance."""
        found: dict[str, dict[str, int]] = {}
        for position, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            found.setdefault(name, {})[kind] = position
        return found


@dataclass(slots=True)
class Sighting:
    """A file for one step of one worker, seen in a listing and not read yet."""

    step: int
    worker: str
    modified: float
    size: int
    key: str


@dataclass(slots=True, eq=False)
class StepFile:
    """What one worker saved at one step in one mode: the unit of reading."""

    step: int
    worker: str
    mode: Mode
    mode_step: int
    modified: float
    layout: Layout
    place: object = None
    """Where the bytes are, known to the source only."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key: str = ""
    """Of the sighting that it was opened by; filled by the trial."""


@dataclass(slots=True)
class FileValues:
    """The values read from one step file.

    `joined` holds the numeric, non-empty tensors: per asked group, type and size the positions in the layout and the
    values.
    A position that is in none of the four was not asked for.
    """

    joined: list[tuple[int, Positions, Segments]] = field(default_factory=list)
    texts: dict[int, Array] = field(default_factory=dict)
    empty: dict[int, Array] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    wall_time: float | None = None

    def arrays(self) -> dict[int, Array]:
        """Position -> value in its own shape, also of text and empty tensors."""
        found: dict[int, Array] = dict(self.texts)
        found.update(self.empty)
        for _, positions, segments in self.joined:
            found.update(zip(positions.tolist(), segments.tensors(), strict=True))
        return found


@dataclass(slots=True)
class AlikeValues:
    """The values of several step files that are laid out alike, in which everything that was asked for could be read.

    `joined` has per asked group, type and size the positions, which are those of each file, and the values of all
    files, file after file.
    """

    joined: list[tuple[int, Positions, Segments]] = field(default_factory=list)
    wall_times: list[float | None] = field(default_factory=list)

    def __len__(self) -> int:
        """How many files."""
        return len(self.wall_times)


@dataclass(slots=True)
class Collections:
    """The collections of a run, merged from all workers' files."""

    by_name: dict[str, SavedCollection] = field(default_factory=dict)
    num_workers: int | None = None
    files: dict[str, float] = field(default_factory=dict)
    """Worker -> modification time of its file."""
    problems: dict[str, str] = field(default_factory=dict)


class Source(ABC):
    """One saved run in one format. "Yield what is new" is its verb: it can be asked again while the run goes on."""

    name: str
    store: Store
    rank: ClassVar[int] = 0
    """Whether a store holds a format is asked of small ranks first: those that have to look into files come last."""

    is_log: ClassVar[bool] = False
    """Whether it is no trial of Debugger: its messages speak of files, and folders below it may be parts of it."""

    @property
    def open_from(self) -> float:
        """The first step that may get more values; those before, and all where this is infinite, are whole as saved."""
        return math.inf

    @abstractmethod
    def __init__(self, store: Store) -> None:
        """Read nothing yet."""

    @classmethod
    @abstractmethod
    def detect(cls, store: Store) -> bool:
        """Whether the store's root holds a run in this format, complete or just begun."""

    @classmethod
    def runs_beside(cls, store: Store) -> Sequence[str]:
        """The files at the root that are a run of this format each, if there are several."""
        del store
        return ()

    @abstractmethod
    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        """The step files listed now (None: all of them; else those at `from_step` or later), sorted by step.

        No step of a worker occurs twice, and which of two files stands for it does not depend on `from_step`.
        """

    @abstractmethod
    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        """What a step file says it holds: one StepFile, or one per mode.

        A file that was replaced since the listing is opened as it is now, and `sighting` is brought up to date.

        Raises:
            FormatError: it is not readable, perhaps not yet.
            StorageError: it vanished, or the store did not answer.
        """

    @abstractmethod
    def read(self, file: StepFile, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions of the file's layout; each group is joined by itself.

        What cannot be read is in `problems`; nothing is raised for it, but StorageUnavailable.
        """

    def read_alike(self, files: Sequence[StepFile], groups: Sequence[Positions]) -> AlikeValues:
        """The values of as many of the leading files (all of one layout) as are laid out like one that was read before.

        The next one, and all of them in a format that does not have this, are to be read one by one.
        """
        del files, groups
        return AlikeValues()

    @abstractmethod
    def size_of(self, file: StepFile, groups: Sequence[Positions]) -> int:
        """About how many bytes `read` will take, without reading."""

    @abstractmethod
    def wall_time(self, file: StepFile) -> float | None:
        """When the file was written, by the clock of the training script, if the format says so."""

    @abstractmethod
    def collections(self) -> Collections | None:
        """The collections as they are known now; None when nothing changed since the last call."""

    def reveal(self) -> bool:
        """The run is over: show what was held back because it came after its step was opened; whether there is any."""
        return False

    @abstractmethod
    def ended(self) -> bool:
        """Whether the run left its end marker."""


def interned(
    cache: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout],
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    limit: int = 512,
) -> Layout:
    """The one Layout for these entries; the cache is emptied when a run keeps inventing new ones."""
    key = (names, kinds)
    layout = cache.get(key)
    if layout is None:
        if len(cache) >= limit:
            cache.clear()
        layout = cache[key] = Layout(names, kinds)
    return layout


def join(arrays: Mapping[int, Array], groups: Sequence[Positions], values: FileValues) -> None:
    """Put whole arrays into `values`, joined per group, type and size (the way for sources without raw bytes)."""
    for number, group in enumerate(groups):
        alike: dict[tuple[str, int], list[int]] = {}
        for position in group.tolist():
            array = arrays.get(position)
            if array is None:
                continue
            if array.dtype.kind in "USO":
                values.texts[position] = array
            elif array.size == 0:
                values.empty[position] = array
            else:
                # of one size, so that no number depends on what a tensor happens to be joined with
                alike.setdefault((array.dtype.str, array.size), []).append(position)
        for positions in alike.values():
            segments = Segments.of([arrays[position] for position in positions])
            values.joined.append((number, np.array(positions, dtype=np.int64), segments))
