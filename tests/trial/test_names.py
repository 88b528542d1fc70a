"""What a selection means: collections, patterns and names, less what is excluded, in the order of first appearance."""

from __future__ import annotations

import pytest

from evaluator.formats.collection_file import SavedCollection
from evaluator.needs import Selection
from evaluator.sources.base import Collections
from evaluator.trial.names import NameBook

NAMES = ["z/weight", "a/bias", "gradient/z/weight", "loss", "x[0](1)", "größe:0"]


@pytest.fixture
def book() -> NameBook:
    book = NameBook()
    book.see(NAMES)
    book.collections = Collections(
        {
            "gradients": SavedCollection("gradients", ("^gradient",)),
            "losses": SavedCollection("losses", (), ("loss", "never saved")),
            "both": SavedCollection("both", ("weight$",), ("a/bias",)),
            "empty": SavedCollection("empty"),
        }
    )
    return book


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), NAMES),
        (Selection(collections=("gradients",)), ["gradient/z/weight"]),
        (Selection(collections=("losses",)), ["loss"]),
        (Selection(collections=("both",)), ["z/weight", "a/bias", "gradient/z/weight"]),
        (Selection(collections=("empty",)), []),
        (Selection(collections=("unknown",)), []),
        (Selection(collections=("all",)), NAMES),
        (Selection(regexes=("weight",)), ["z/weight", "gradient/z/weight"]),
        (Selection(regexes=("^z", "bias")), ["z/weight", "a/bias"]),
        (Selection(names=("loss", "x[0](1)", "größe:0", "no such")), ["loss", "x[0](1)", "größe:0"]),
        (Selection(collections=("losses",), regexes=("bias",), names=("z/weight",)), ["z/weight", "a/bias", "loss"]),
        (Selection(regexes=("weight",), exclude=("^gradient",)), ["z/weight"]),
        (Selection(exclude=("weight", "loss", "x", "g")), ["a/bias"]),
        (Selection(names=("loss",), exclude=("loss",)), []),
    ],
)
def test_a_selection_is_the_union_less_the_excluded(book: NameBook, selection: Selection, expected: list[str]):
    assert book.selected(selection) == expected


def test_names_stand_in_the_order_of_first_appearance(book: NameBook):
    book.see(["loss", "new", "z/weight", "newer"])

    assert list(book.order.items()) == [(name, at) for at, name in enumerate([*NAMES, "new", "newer"])]


def test_a_selection_is_made_again_when_collections_change(book: NameBook):
    selection = Selection(collections=("losses",))
    before = book.selected(selection), book.version
    book.collections = Collections({"losses": SavedCollection("losses", ("bias",))})

    assert (before, book.selected(selection), book.version) == ((["loss"], 1), ["a/bias"], 2)


def test_all_is_every_tensor_whatever_its_file_says(book: NameBook):
    book.collections = Collections({"all": SavedCollection("all", (), ("loss",))})

    assert book.selected(Selection(collections=("all",))) == NAMES


def test_each_pair_is_decided_once(book: NameBook, monkeypatch: pytest.MonkeyPatch):
    selection = Selection(regexes=("weight",))
    first = book.selected(selection)
    monkeypatch.setattr(NameBook, "_decide", lambda *_: pytest.fail("decided twice"))

    assert book.selected(selection) == first
