"""The trial that a rule is given: its steps, tensors, collections and workers.

Source:
    smdebug-api.md, sections 5 and 6; saved-format.md, section 11; results compared with smdebug 1.0.34 by
    `make conformance`. Where the reference is wrong we are not: docs/smdebug-compatibility.md lists each place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, KeysView

from evaluator.clock import Clock
from evaluator.segments import Array
from evaluator.user_rules.collection import Collection
from evaluator.user_rules.core_utils import flatten, match_inc
from evaluator.user_rules.exceptions import TensorUnavailable
from evaluator.user_rules.following import FollowedRun
from evaluator.user_rules.modes import ModeKeys
from evaluator.user_rules.reader import Limits, Reader
from evaluator.user_rules.tensor import Tensor
from evaluator.user_rules.values import Values

Regexes = str | Iterable[object] | None

_NUMBERS = re.compile(r"\d+")


class Trial(FollowedRun):
    """What one run has saved so far, as far as its reader shows it."""

    def __init__(
        self,
        name: str,
        reader: Reader,
        clock: Clock,
        limits: Limits,
        *,
        cache: bool = False,
        range_steps: tuple[int | None, int | None] | None = None,
    ) -> None:
        """Look once; the end of the run is not looked for yet, as in the reference.

        Args:
            name: what to call it.
            reader: where its steps come from.
            clock: for waiting.
            limits: how long to wait for what.
            cache: whether values are given as the same object each time.
            range_steps: what the reader was told to leave out, to be shown only.
        """
        self.name = name
        self.cache = cache
        self.range_steps = range_steps
        self.saved_values = Values(reader, limits.cache_bytes)
        self._tensors: dict[str, Tensor] = {}
        super().__init__(reader, clock, limits)

    @property
    def asked_for(self) -> int:
        """How many tensors were looked at."""
        return len(self._tensors)

    @property
    def _global_to_mode(self) -> dict[int, tuple[ModeKeys, int]]:
        """Global step -> mode and mode step; private, but one published rule reads it."""
        return self.book.mode_of

    @property
    def _mode_to_global(self) -> dict[ModeKeys, dict[int, int]]:
        return self.book.global_of

    def tensor_names(
        self,
        show_prefixed_tensors: bool | int = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: Regexes = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """The names seen so far, sorted; those of one step, of one mode, matching a pattern, or in a collection.

        Args:
            show_prefixed_tensors: without meaning; a number here is taken as the step, as the documentation has it.
            step: only what was saved at this step, counted within the mode.
            mode: only what was saved in this mode, unless it is GLOBAL.
            regex: one pattern or a list; a name counts when any of them is found in it.
            collection: a collection or its name; an unknown name makes an empty collection.

        Raises:
            ValueError: both a pattern and a collection were given.
        """
        self.maybe_refresh()
        if not isinstance(show_prefixed_tensors, bool) and step is None:
            step = show_prefixed_tensors
        if regex is not None and collection is not None:
            raise ValueError("Only one of `regex` or `collection` can be passed to this method")
        names = self._names(step, mode)
        if regex is not None:
            patterns = [str(one) for one in flatten([regex] if isinstance(regex, str) else list(regex))]
            names = {name for name in names if match_inc(name, patterns)}
        if collection is not None:
            names &= self._in_collection(collection)
        return sorted(names)

    tensors = tensor_names
    """As it was called in 2019."""

    def tensors_in_collection(self, name: str | Collection) -> list[str]:
        """As it was called in 2019."""
        return self.tensor_names(collection=name)

    def tensors_matching_regex(self, regex: Regexes) -> list[str]:
        """As it was called in 2019."""
        return self.tensor_names(regex=regex)

    def tensor(self, tname: str) -> Tensor:
        """The tensor of that name, always the same object.

        Raises:
            TensorUnavailable: no step seen so far has it.
        """
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        if tname not in self._tensors:
            self._tensors[tname] = Tensor(tname, self, self.cache)
        return self._tensors[tname]

    def has_tensor(self, tname: str) -> bool:
        """Whether any step seen so far has a tensor of that name."""
        if tname not in self.book.names:
            self.maybe_refresh(tname)
        return tname in self.book.names

    def steps(self, mode: ModeKeys | None = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """The complete steps of a mode, counted within it; for GLOBAL those of all modes."""
        self.maybe_refresh()
        return self.book.steps(mode, incomplete=show_incomplete_steps)

    def modes(self) -> KeysView[ModeKeys]:
        """The modes seen so far; GLOBAL is never among them."""
        return self.book.global_of.keys()

    def mode(self, global_step: int) -> ModeKeys | None:
        """The mode of a global step."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """The number of a global step within its mode."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """The mode of a global step, and its number within the mode."""
        if global_step not in self.book.mode_of:
            self.maybe_refresh()
        return self.book.mode_of.get(global_step, (None, None))

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """The global step of a step of a mode."""
        found = self.book.global_step(mode, mode_step)
        if found is None:
            self.maybe_refresh()
        return self.book.global_step(mode, mode_step)

    def workers(self) -> list[str]:
        """The workers of which there is a collections file, sorted."""
        self.maybe_refresh()
        return list(self._workers)

    def collections(self) -> dict[str, Collection]:
        """The collections by name; they may be extended."""
        return self.collection_manager.get_collections()

    def collection(self, name: str) -> Collection:
        """The collection of that name; an empty one is made where there is none."""
        return self.collection_manager.get(name)

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Array]:
        """The values of collection `inputs` at the step, in the order of the numbers in their names."""
        return self._values(self.tensor_names(step=step, mode=mode, collection="inputs"), step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Array]:
        """The values of tensors whose names hold `labels`."""
        return self._values(self.tensor_names(step=step, mode=mode, regex="labels*"), step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Array]:
        """The values of tensors whose names hold `predictions`."""
        return self._values(self.tensor_names(step=step, mode=mode, regex="predictions*"), step, mode)

    def __repr__(self) -> str:
        """Name, path, steps, collections and tensors."""
        kind = f"<{type(self).__module__}.{type(self).__qualname__} object at {id(self):#x}>"
        known = {"name": self.name, "path": self.path, "steps": self.steps()}
        lists = {"collections": list(self.collections()), "tensor_names": self.tensor_names()}
        lines = "".join(f"    {key}={value},\n" for key, value in {**known, **lists}.items())
        return f"{kind}:(\n{lines})"

    def __hash__(self) -> int:
        """By name and path."""
        return hash((self.name, self.path))

    def __eq__(self, other: object) -> bool:
        """Whether it is the same run under the same name."""
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def _names(self, step: int | None, mode: ModeKeys) -> set[str]:
        """The names seen at all, in a mode, or at a step."""
        if step is None and mode is ModeKeys.GLOBAL:
            return set(self.book.names)
        known = self.book.global_of.get(mode, {}) if mode is not ModeKeys.GLOBAL else {}
        wanted = known.values() if step is None else [self.book.global_step(mode, step)]
        layouts = {
            file.layout
            for one in wanted
            if one is not None
            for saved in self.book.files.get(one, {}).values()
            for file in saved
            if mode is ModeKeys.GLOBAL or int(file.mode) == mode.value
        }
        return {name for layout in layouts for name in layout.at}

    def _in_collection(self, collection: str | Collection) -> set[str]:
        if isinstance(collection, str):
            if collection not in self.collections():
                self.logger.warning("Collection %s not found", collection)
            collection = self.collection(collection)
        if not isinstance(collection, Collection):
            raise TypeError(f"Invalid argument type for collection {type(collection)}")
        recorded, patterns = collection.tensor_names, collection.include_regex
        return {name for name in self.book.names if name in recorded or match_inc(name, patterns)}

    def _values(self, names: list[str], step: int, mode: ModeKeys) -> list[Array]:
        def number(name: str) -> int:
            found = _NUMBERS.findall(name)
            return int(found[-1]) if found else -1

        return [self.tensor(name).value(step, mode) for name in sorted(names, key=number)]
