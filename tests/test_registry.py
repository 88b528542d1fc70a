import subprocess
import sys

import pytest

from evaluator import registry
from evaluator.errors import Mistake
from evaluator.registry import builtin_rules, find_rule, known_rules, rules_of

RULE = '''"""Fires when something is bad.

More about it.
"""
from evaluator.rule import Recommended, Rule, RuleParameters, Summary

RULE = Rule("{name}", "error", RuleParameters, lambda p: [Summary("losses")], lambda *_: None{more})
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of these files and imports it."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(**files):
        (tmp_path / "some_rules").mkdir()
        (tmp_path / "some_rules" / "__init__.py").write_text("")
        for name, text in files.items():
            path = (tmp_path / "some_rules").joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(text)
        return __import__("some_rules")

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "some_rules"]:
        del sys.modules[name]


def rule(name, more=""):
    return RULE.format(name=name, more=more)


def test_rules_are_found_in_the_package_and_its_topics_by_name(package):
    rules = rules_of(package(zero=rule("AllZero"), loss__over=rule("Overfit"), loss__again=rule("NLPRatio2")))

    assert list(rules) == ["AllZero", "NLPRatio2", "Overfit"]


def test_a_found_rule_knows_its_module_and_its_documentation(package):
    found = rules_of(package(loss__over=rule("Overfit")))["Overfit"]

    assert (
        found.module,
        found.documentation,
    ) == ("some_rules.loss.over", "Fires when something is bad.\n\nMore about it.")


def test_a_module_with_an_underscore_is_no_rule(package):
    assert rules_of(package(_shared="", over=rule("Overfit"))).keys() == {"Overfit"}


def test_an_empty_package_has_no_rules(package):
    assert rules_of(package()) == {}


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"zero": ""}, "zero.py: has no RULE"),
        ({"zero": "RULE = 5"}, "zero.py: has a RULE of type int"),
        ({"zero": rule("all_zero")}, "zero.py: rule name 'all_zero' is not CamelCase"),
        ({"zero": rule("ALL")}, "zero.py: rule name 'ALL' is not CamelCase"),
        (
            {"a": rule("AllZero"), "b__c": rule("Allzero")},
            "c.py: rule 'Allzero' has the name of the rule in some_rules.a",
        ),
        (
            {"zero": rule("AllZero", ', recommended={"treshold": Recommended(1, "so")}')},
            "zero.py: recommended value of 'treshold', which is no parameter",
        ),
    ],
)
def test_a_module_that_is_not_in_form_is_named(package, files, what):
    made = package(**files)

    with pytest.raises(TypeError, match=what):
        rules_of(made)


@pytest.mark.parametrize("name", ["AllZero", "allzero", " ALLZERO "])
def test_a_rule_is_found_in_whatever_case(package, name):
    rules = rules_of(package(zero=rule("AllZero")))

    assert find_rule(name, rules) is rules["AllZero"]


def test_an_unknown_rule_is_a_mistake_with_the_nearest_names(package):
    mistake = find_rule("AllZeros", rules_of(package(zero=rule("AllZero"))), "--rule")

    assert Mistake("--rule", "rule 'AllZeros' is not known", "did you mean 'AllZero'? rules: AllZero") == mistake


def test_the_rules_of_this_program_are_in_form_and_walked_once():
    assert builtin_rules() is builtin_rules()
    assert list(builtin_rules()) == sorted(builtin_rules())


@pytest.mark.parametrize("name", list(builtin_rules()))
def test_each_built_in_rule_is_found_by_the_name_of_its_module(name: str):
    found = registry._shipped_rule(name)
    assert found is not None
    assert (found.name, found.module) == (name, builtin_rules()[name].module)


@pytest.mark.parametrize("name", ["vanishinggradient", "NoSuchRule", "_Finite", "__init__", "", "../AllZero", "a.b"])
def test_what_is_no_rule_is_found_in_no_module(name: str):
    assert registry._shipped_rule(name) is None
    assert name not in known_rules()


def test_when_all_rules_were_listed_none_is_looked_for_again():
    known = known_rules(with_packs=False)

    assert all(rule is builtin_rules()[name] for name, rule in known.items())


def test_naming_a_built_in_rule_imports_no_other():
    script = """
import subprocess
import sys
from evaluator.registry import find_rule
assert find_rule("VanishingGradient").name == "VanishingGradient"
print([name for name in sys.modules if name.startswith("builtin_rules.") and name.count(".") == 2])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['builtin_rules.gradients.vanishing_gradient']"
