import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.config.names import assign_names, folder_name
from evaluator.config.request import RuleRequest
from tests.config.small_rules import LAYER, OVERFIT


def named(*names, rule=LAYER):
    return [(RuleRequest(rule.name, {}, "ours", f"rule[{place}]", name), rule) for place, name in enumerate(names)]


def test_a_configuration_is_called_like_its_rule_unless_it_has_a_name():
    assert assign_names(named(None, "mine")) == (["DeadLayer", "mine"], [])


def test_the_same_rule_again_is_counted_up():
    assert assign_names([*named(None, None, None), *named(None, rule=OVERFIT)]) == (
        ["DeadLayer", "DeadLayer-2", "DeadLayer-3", "Overfit"],
        [],
    )


def test_a_counted_name_gives_way_to_a_given_one():
    assert assign_names(named(None, None, "DeadLayer-2")) == (["DeadLayer", "DeadLayer-3", "DeadLayer-2"], [])


@pytest.mark.parametrize(("names", "what"), [(("a", "a"), "'a' is given twice"), ((" ",), "is empty")])
def test_names_that_cannot_be_told_apart_are_mistakes(names, what):
    _, mistakes = assign_names(named(*names))

    assert what in str(mistakes[0])


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("VanishingGradient-2", "VanishingGradient-2"),
        ("a.b_c", "a.b_c"),
        ("a/../b", "a%2F..%2Fb"),
        ("50%", "50%25"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("\udc80", "%ED%B2%80"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
        ("checkpoint", "%63heckpoint"),
        ("checkpoints", "checkpoints"),
        ("status.json", "%73tatus%2Ejson"),
    ],
)
def test_the_folder_of_a_configuration(name, folder):
    assert folder == folder_name(name)


def test_a_long_name_is_cut_and_marked():
    folders = {folder_name("ü" * 100 + end) for end in "ab"}

    assert len(folders) == 2
    assert all(len(folder) <= 200 and folder.startswith("%C3%BC") and "%-" not in folder for folder in folders)


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_different_names_have_different_folders_that_stay_inside(first, second):
    folders = [folder_name(first), folder_name(second)]

    assert (first == second) == (folders[0] == folders[1])
    assert all(0 < len(folder) <= 200 and "/" not in folder and folder not in (".", "..") for folder in folders)
