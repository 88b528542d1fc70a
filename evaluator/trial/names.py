"""Which tensors a selection means: collections and patterns resolved against names, each pair once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from evaluator.formats.index_file import short
from evaluator.needs import Selection
from evaluator.sources.base import Collections, Layout
from evaluator.trial.patterns import Patterns

ALL = "all"
"""The collection that every tensor is in, whatever its file says."""

MOST_LAYOUTS = 512
"""Layouts that are known to hold no new name; runs have a handful."""

MOST_ANSWERS = 200_000
"""Answers that are remembered; a run that keeps inventing names must not fill the memory."""


class NameBook:
    """The tensors in the order in which training first saved them, and what selects them."""

    def __init__(self) -> None:
        """Know no tensor and no collection yet."""
        self.order: dict[str, int] = {}
        self._seen: set[Layout] = set()
        self.version = 0
        """Grows when collections change, so that selections made before are made again."""
        self._collections = Collections()
        self._answers: dict[Selection, dict[str, bool]] = {}
        self._answered = 0
        self._saved_patterns = Patterns()
        self._given_patterns = Patterns()

    def see(self, names: Iterable[str]) -> None:
        """Give new names their place in the order."""
        for name in names:
            if name not in self.order:
                self.order[name] = len(self.order)

    def see_layout(self, layout: Layout) -> None:
        """Give the new names of a layout their place in the order; one that was seen holds none."""
        if layout in self._seen:
            return
        if len(self._seen) >= MOST_LAYOUTS:
            self._seen.clear()
        self._seen.add(layout)
        self.see(layout.at)

    @property
    def collections(self) -> Collections:
        """The collections as far as they are known."""
        return self._collections

    @collections.setter
    def collections(self, collections: Collections) -> None:
        changed = collections.by_name != self._collections.by_name
        self._collections = collections
        # logs tell their collections anew whenever they have something to say of a row
        if changed:
            self._forget_answers()
            self.version += 1

    def selects(self, selection: Selection, name: str) -> bool:
        """Whether the selection means this tensor."""
        return self.chooser(selection)(name)

    def chooser(self, selection: Selection) -> Callable[[str], bool]:
        """What tells whether the selection means a tensor, to be asked of many."""
        answers = self._answers.setdefault(selection, {})

        def chosen(name: str) -> bool:
            answer = answers.get(name)
            if answer is None:
                if self._answered >= MOST_ANSWERS:
                    self._forget_answers()
                answer = answers[name] = self._decide(selection, name)
                self._answered += 1
            return answer

        return chosen

    @property
    def problems(self) -> Mapping[str, str]:
        """Patterns that are searched for no more, and why."""
        dropped = {**self._saved_patterns.dropped, **self._given_patterns.dropped}
        found = {f"pattern {short(pattern)}": why for pattern, why in dropped.items()}
        if self._saved_patterns.untried:
            count = len(self._saved_patterns.untried)
            found["collections"] = f"after so many slow patterns, {count} more are not searched for"
        return found

    def selected(self, selection: Selection) -> list[str]:
        """The tensors seen so far that the selection means, in their order."""
        return list(filter(self.chooser(selection), self.order))

    def in_collection(self, collection: str, name: str) -> bool:
        """Whether the tensor belongs to the collection, by name or by one of its patterns."""
        if collection == ALL:
            return True
        saved = self._collections.by_name.get(collection)
        if saved is None:
            return False
        return name in saved.tensor_names or self._saved_patterns.any_found(saved.include_regex, name)

    def _forget_answers(self) -> None:
        for answers in self._answers.values():
            answers.clear()
        self._answered = 0

    def _decide(self, selection: Selection, name: str) -> bool:
        if selection.exclude and self._given_patterns.any_found(selection.exclude, name):
            return False
        return (
            selection.everything
            or name in selection.names
            or (len(selection.regexes) > 0 and self._given_patterns.any_found(selection.regexes, name))
            or any(self.in_collection(collection, name) for collection in selection.collections)
        )
