"""Collections files: those of the reference, what is left out of a bad one, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError, Truncated
from evaluator.formats.collection_file import SavedCollection, encode_collections, parse_collections

TRIALS = Path(__file__).parents[1] / "data" / "trials"
FILE = (TRIALS / "ddp_two_workers/collections/000000000/worker_0_collections.json").read_bytes()


def collections(*entries: object, meta: object = None) -> bytes:
    """A collections file with these collections, under the keys c0, c1, ..."""
    saved = {f"c{number}": entry for number, entry in enumerate(entries)}
    return json.dumps({"collections": saved, "_meta": meta or {"num_workers": 1}}).encode()


def problem(data: bytes) -> str:
    """The only problem of a file."""
    (text,) = parse_collections(data, "x").problems
    return text


def test_a_file_of_the_reference_is_read_without_problems() -> None:
    found = parse_collections(FILE, "x")

    assert (list(found.collections), found.num_workers, found.problems) == (
        ["losses", "default", "gradients", "biases", "weights", "all"], 2, (),
    )  # fmt: skip
    assert found.collections["losses"] == SavedCollection(
        "losses", ("[Ll]oss_(?!input).*output",), ("CrossEntropyLoss_output_0",)
    )


def test_what_was_written_is_read_and_has_what_the_reference_needs() -> None:
    written = {"losses": SavedCollection("losses", ("loss", "^l"), ("a", "b"))}

    data = encode_collections(written, 3)

    assert parse_collections(data, "x").collections == written
    assert json.loads(data) == {
        "collections": {
            "losses": {
                "name": "losses",
                "include_regex": ["loss", "^l"],
                "tensor_names": ["a", "b"],
                "reduction_config": None,
                "save_config": None,
                "save_histogram": True,
            }
        },
        "_meta": {"num_workers": 3},
    }


def test_keys_that_are_not_known_are_ignored() -> None:
    content = json.loads(collections({"name": "a", "reduction_config": {"reductions": "median"}, "new": 1})) | {
        "new": 1
    }

    found = parse_collections(json.dumps(content).encode(), "x")

    assert (list(found.collections), found.problems) == (["a"], ())


def test_missing_lists_are_empty_and_a_missing_name_is_the_key() -> None:
    assert parse_collections(collections({}, {"include_regex": False, "tensor_names": None}), "x").collections == {
        "c0": SavedCollection("c0"),
        "c1": SavedCollection("c1"),
    }


def test_the_name_inside_counts_not_the_key() -> None:
    assert list(parse_collections(collections({"name": "losses"}), "x").collections) == ["losses"]


@pytest.mark.parametrize("pattern", ["[", "(" * 500 + ")" * 500, "a{99999999999999999999}", "(?<=a*)b", "x" * 1001])
def test_a_pattern_that_cannot_be_used_is_left_out_and_named(pattern: str) -> None:
    found = parse_collections(collections({"include_regex": ["good", pattern]}), "x")

    assert found.collections["c0"].include_regex == ("good",)
    assert found.problems[0].startswith(f"x: collection 'c0': pattern '{pattern[:1]}")


@pytest.mark.parametrize(
    "pattern",
    ["(?:a{50000}){50000}", "(?:" * 40 + "a" + ")+" * 40, "(?:" * 30 + "a" + "){1,9}" * 30, "[\0-\uffff]" * 9],
    ids=["repeats that multiply", "repeats that nest", "counts that nest", "wide sets"],
)
def test_a_pattern_that_would_take_all_memory_is_not_compiled(pattern: str) -> None:
    """A pattern of twenty characters took all memory there was, before any search with a time limit."""
    file = parse_collections(collections({"include_regex": [pattern, "loss"]}), "x")

    assert file.collections["c0"].include_regex == ("loss",)
    assert ["too much memory" in problem for problem in file.problems if "pattern" in problem] == [True]


def test_flags_that_contradict_each_other_are_a_problem_of_their_pattern() -> None:
    """The ValueError of such a pattern ended the job."""
    file = parse_collections(collections({"include_regex": ["(?a)(?u)x"]}), "x")

    assert file.collections["c0"].include_regex == ()
    assert "flags are incompatible" in file.problems[0]


def test_many_patterns_that_are_slow_to_compile_are_given_up() -> None:
    heavy = [f"(?i)[\0-\uffff]{number}" for number in range(300)]
    file = parse_collections(collections({"include_regex": heavy}), "x")

    assert 100 < len(file.collections["c0"].include_regex) < 200
    assert "the patterns of the file would take too much" in file.problems[0]


def test_a_pattern_that_python_warns_of_is_used_quietly() -> None:
    found = parse_collections(collections({"include_regex": ["[[a]"]}), "x")

    assert (found.collections["c0"].include_regex, found.problems) == (("[[a]",), ())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, "x: collection 'c0': it is 3; an object would be right"),
        ({"name": 3}, "x: collection 'c0': 'name' is 3; a text would be right"),
        ({"tensor_names": "a"}, "x: collection 'c0': 'tensor_names' is 'a'; a list of texts would be right"),
        ({"tensor_names": ["a", 3]}, "x: collection 'c0': 1 items of 'tensor_names' are no texts, such as 3"),
    ],
)
def test_a_bad_part_is_a_problem_and_the_rest_is_used(entry: object, message: str) -> None:
    data = collections(entry, {"name": "good"})

    assert problem(data) == message
    assert "good" in parse_collections(data, "x").collections


def test_two_collections_of_one_name_are_a_problem() -> None:
    assert (
        problem(collections({"name": "a"}, {"name": "a"}))
        == "x: collection 'c1': there are two collections 'a'; the last one is used"
    )


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1), ("64", 64), (0, None), (-1, None), (None, None), (1.5, None), ([], None)]
)
def test_the_number_of_workers_is_a_number_or_unknown(value: object, expected: int | None) -> None:
    assert parse_collections(collections(meta={"num_workers": value}), "x").num_workers == expected


@pytest.mark.parametrize("meta", [[1], "x", {"other": 1}])
def test_a_missing_number_of_workers_is_a_problem(meta: object) -> None:
    assert problem(collections(meta=meta)) == "x: 'num_workers' is missing; a number of 1 or more would be right"


def test_problems_are_told_up_to_a_number() -> None:
    found = parse_collections(collections(*range(500)), "x")

    assert (len(found.problems), found.problems[-1]) == (101, "x: 400 more problems")


def test_too_many_patterns_are_not_compiled() -> None:
    found = parse_collections(collections({"include_regex": [f"p{number}" for number in range(10_001)]}), "x")

    assert (len(found.collections["c0"].include_regex), found.problems) == (
        10_000, ("x: collection 'c0': there are too many patterns; at most 10000 in a file",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "data", [b"{}", b'{"collections": []}', b"[{}]", b"{]}", b'{"collections": ' + b"[" * 9999 + b"}"]
)
def test_a_file_without_collections_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_collections(data, "x")


def test_a_cut_file_is_truncated_or_a_format_error() -> None:
    for stop in range(len(FILE)):
        with pytest.raises(FormatError):
            parse_collections(FILE[:stop], "x")


def test_an_empty_file_is_truncated() -> None:
    with pytest.raises(Truncated):
        parse_collections(b"", "x")


def test_random_damage_is_read_or_a_format_error() -> None:
    chance = random.Random(1)  # noqa: S311 - the same damage each time
    for _ in range(3000):
        damaged = bytearray(FILE)
        damaged[chance.randrange(len(damaged))] = chance.choice(b'0-9"{}[](),:e.\\ \xff\x00')
        try:
            parse_collections(bytes(damaged), "x")
        except FormatError:
            continue


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "include_regex", "tensor_names"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=3), JSON)
def test_any_json_gives_collections_or_problems(entries: list[object], meta: object) -> None:
    found = parse_collections(collections(*entries, meta=meta), "x")

    assert len(found.collections) + len(found.problems) >= len(entries)
