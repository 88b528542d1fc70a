"""Source: the folder that SageMaker Debugger's hooks write, with index, event and collection files.

Source:
    saved format of smdebug 1.0.34; an index file says which record of an event file holds which tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import cast

import numpy as np

from evaluator.errors import FormatError, KeyMissing, KeyRefused
from evaluator.formats.collection_file import CollectionFile, SavedCollection, parse_collections
from evaluator.formats.index_file import IndexFile
from evaluator.formats.key_names import (
    COLLECTIONS_PREFIX,
    END_MARKER,
    INDEX_PREFIX,
    index_key,
    parse_collections_key,
    parse_index_key,
)
from evaluator.formats.reduction_names import parse_saved_name
from evaluator.sources.base import (
    SHAPE,
    VALUE,
    AlikeValues,
    Collections,
    FileValues,
    Layout,
    Positions,
    Sighting,
    Source,
    StepFile,
    interned,
)
from evaluator.sources.event_reading import ONLY_SHAPE, EventReader, Place
from evaluator.sources.index_reading import IndexReader
from evaluator.storage.base import Entry, Store, check_key

MAX_FILE = 64 * 2**20
"""Index and collection files above this many bytes are not read; an index entry takes about 90, so this is some
hundred thousand tensors in one file."""


@dataclass(frozen=True, slots=True)
class _Known:
    """How the entries of an index file map to a layout, shared by all files with the same entries."""

    layout: Layout
    keep: Positions | None
    """Which tensor entries stand in the layout, when some are repeated; the last one of a name is kept."""


class SmdebugFolder(Source):
    """A trial as smdebug wrote it."""

    name = "smdebug"

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self.store = store
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], _Known] = {}
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._index = IndexReader()
        self._reader = EventReader(store)
        self._collection_files: dict[str, tuple[Entry, CollectionFile | str]] = {}

    @classmethod
    def detect(cls, store: Store) -> bool:
        """Whether there is an index, a collections folder or an end marker at the root; logs can have a marker too."""
        folders = set(store.folders())
        if {"index", "collections", "events"} & folders:
            return True
        # beside other folders it is the end of a log that is in them (train/, checkpoint-10/)
        marked = not folders and store.stat(END_MARKER) is not None
        return marked and [entry.key for entry in store.files()] == [END_MARKER]

    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        """The index files listed now: their names alone say step and worker.

        An unusual name (.csv, another folder, a step without zeros) can mean the same as another one. The last one in
        the order of keys stands for both: if a listing that begins at a later key shows any, it shows that one.
        """
        after = "" if from_step is None else index_key(from_step, "*").removesuffix("_*.json")
        found: dict[tuple[int, str], Sighting] = {}
        for entry in self.store.list(INDEX_PREFIX, start_after=after):
            parsed = parse_index_key(entry.key)
            if parsed is not None and parsed[0] >= (from_step or 0):
                found[parsed] = Sighting(*parsed, entry.modified, entry.size, entry.key)
        return sorted(found.values(), key=lambda sighting: sighting.step)

    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        """Read one index file."""
        if sighting.size > MAX_FILE:
            raise FormatError(sighting.key, f"has {sighting.size} bytes", f"an index file has at most {MAX_FILE}")
        data = self.store.read(sighting.key)
        if len(data) != sighting.size:
            self._look_again(sighting)
        index = self._index.parse(data, sighting.worker, sighting.key)
        if index.mode_step < 0:
            raise FormatError(sighting.key, f"has mode step {index.mode_step}", "mode steps count from 0")
        known = self._layout_of(index)
        starts, lengths = index.starts, index.lengths
        if known.keep is not None:
            starts, lengths = starts[known.keep], lengths[known.keep]
        place = Place(check_key(index.event_file_name), starts, lengths) if index.event_file_name else None
        shapes = {parse_saved_name(name)[0]: shape for name, _, shape in index.shapes}
        said = sighting.step, sighting.worker, index.mode, index.mode_step, sighting.modified
        return [StepFile(*said, known.layout, place, shapes)]

    def read(self, file: StepFile, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions, from one event file."""
        if not isinstance(file.place, Place):
            shaped = {at for at, kind in enumerate(file.layout.kinds) if kind == SHAPE}
            values = FileValues()
            for at in (at for group in groups for at in group.tolist()):
                values.problems[at] = ONLY_SHAPE if at in shaped else "its index file names no event file"
            return values
        return self._reader.read(file.layout, file.place, groups)

    def read_alike(self, files: Sequence[StepFile], groups: Sequence[Positions]) -> AlikeValues:
        """The values of the leading files whose event files differ in nothing but the numbers."""
        places = [file.place for file in takewhile(lambda file: isinstance(file.place, Place), files)]
        return self._reader.read_alike(files[0].layout, cast("list[Place]", places), groups)

    def size_of(self, file: StepFile, groups: Sequence[Positions]) -> int:
        """The length of the records that will be read."""
        return self._reader.size_of(file.layout, file.place, groups) if isinstance(file.place, Place) else 0

    def wall_time(self, file: StepFile) -> float | None:
        """The wall time in the first record."""
        return self._reader.wall_time(file.place) if isinstance(file.place, Place) else None

    def collections(self) -> Collections | None:
        """All workers' collection files merged; None while no file came or changed.

        What a file said stays known when it vanishes, since uploaders move files away.
        """
        changed = False
        for entry in self.store.list(COLLECTIONS_PREFIX):
            known = self._collection_files.get(entry.key)
            if parse_collections_key(entry.key) is None or (known is not None and known[0] == entry):
                continue
            changed = True
            self._collection_files[entry.key] = entry, self._read_collections(entry)
        return self._merge() if changed else None

    def ended(self) -> bool:
        """Whether the end marker is there."""
        return self.store.stat(END_MARKER) is not None

    def _look_again(self, sighting: Sighting) -> None:
        """Note that a file was replaced after it was listed and the new one was read, so that it is not read twice."""
        entry = self.store.stat(sighting.key)
        if entry is not None:
            sighting.modified, sighting.size = entry.modified, entry.size

    def _layout_of(self, index: IndexFile) -> _Known:
        """The shared layout of an index file."""
        shaped = tuple(name for name, _, _ in index.shapes)
        known = self._known.get((index.names, shaped))
        if known is None:
            if len(self._known) >= 512:
                self._known.clear()
            known = self._known[index.names, shaped] = self._make_layout(index.names, shaped)
        return known

    def _make_layout(self, saved: tuple[str, ...], shaped: tuple[str, ...]) -> _Known:
        last: dict[tuple[str, str], int] = {}
        for entry, name in enumerate(saved):
            base, reduction = parse_saved_name(name)
            last[base, reduction or VALUE] = entry
        shapes = list(dict.fromkeys((parse_saved_name(name)[0], SHAPE) for name in shaped))
        entries = [*last, *shapes]
        layout = interned(self._layouts, tuple(name for name, _ in entries), tuple(kind for _, kind in entries))
        keep = None if len(last) == len(saved) else np.array(list(last.values()), dtype=np.int64)
        return _Known(layout, keep)

    def _read_collections(self, entry: Entry) -> CollectionFile | str:
        """One worker's collections file, or why it could not be read: it must not cost the others."""
        try:
            if entry.size > MAX_FILE:
                raise FormatError(entry.key, f"has {entry.size} bytes", f"a collection file has at most {MAX_FILE}")
            return parse_collections(self.store.read(entry.key), entry.key)
        except (FormatError, KeyMissing, KeyRefused) as error:
            return error.without(entry.key)
        except MemoryError:
            return "does not fit in memory"

    def _merge(self) -> Collections:
        merged = Collections()
        for key, (entry, parsed) in sorted(self._collection_files.items(), key=lambda item: item[0]):
            if isinstance(parsed, str):
                merged.problems[key] = parsed
                continue
            merged.files[parse_collections_key(key) or key] = entry.modified
            told = enumerate(parsed.problems, 1)
            merged.problems.update({f"{key} ({at})": what.removeprefix(f"{key}: ") for at, what in told})
            if parsed.num_workers is not None:
                merged.num_workers = max(parsed.num_workers, merged.num_workers or 0)
            for name, collection in parsed.collections.items():
                merged.by_name[name] = _union(merged.by_name.get(name), name, collection)
        return merged


def _union(known: SavedCollection | None, name: str, other: SavedCollection) -> SavedCollection:
    """The same collection as two workers' files have it."""
    if known is None:
        return other
    return SavedCollection(
        name,
        tuple(dict.fromkeys([*known.include_regex, *other.include_regex])),
        tuple(dict.fromkeys([*known.tensor_names, *other.tensor_names])),
    )


SOURCE = SmdebugFolder
