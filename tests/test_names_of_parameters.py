"""Names of parameters are those of the script's author, whatever wraps the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.names_of_parameters import ANYWHERE, plain_name, plain_names, without_wrappers

PLAIN = st.lists(st.sampled_from(["fc", "0", "weight", "layers", "my_module", "modules"]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fc.weight", "fc.weight"),
        ("module.fc.weight", "fc.weight"),
        ("module._orig_mod.fc.weight", "fc.weight"),
        ("_orig_mod.module.fc.weight", "fc.weight"),
        ("module.module.fc.weight", "fc.weight"),
        ("_fsdp_wrapped_module.layers.0._fsdp_wrapped_module.weight", "layers.0.weight"),
        ("layers.0._checkpoint_wrapped_module._orig_mod.fc.bias", "layers.0.fc.bias"),
        ("layers.0._orig_mod", "layers.0"),
        ("gradient/module.fc.weight", "gradient/fc.weight"),
        ("encoder.module.weight", "encoder.module.weight"),
        ("my_orig_mod.weight", "my_orig_mod.weight"),
        ("module", "module"),
        ("", ""),
    ],
)
def test_parts_of_wrappers_go(name: str, expected: str):
    assert plain_name(name) == expected


@given(PLAIN, st.lists(st.tuples(st.integers(0, 5), st.sampled_from(ANYWHERE)), max_size=4))
def test_a_wrapped_name_is_the_plain_one_wherever_the_wrappers_are(parts: list[str], wrappers: list[tuple[int, str]]):
    wrapped = list(parts)
    for at, wrapper in wrappers:
        wrapped.insert(at, wrapper)

    assert without_wrappers(".".join(wrapped)) == ".".join(parts)


def test_a_layer_that_its_author_called_module_keeps_its_name():
    assert plain_names(["module.weight", "head.weight"]) == {
        "module.weight": "module.weight",
        "head.weight": "head.weight",
    }


def test_what_all_names_have_is_a_wrapper():
    assert plain_names(["module.a.weight", "module.b.weight"]) == {
        "module.a.weight": "a.weight",
        "module.b.weight": "b.weight",
    }


def test_the_model_inside_of_its_wrappers_has_no_name():
    assert plain_names(["module", "module._orig_mod", "module._orig_mod.fc"]) == {
        "module": "",
        "module._orig_mod": "",
        "module._orig_mod.fc": "fc",
    }


def test_no_two_names_become_one():
    names = ["_orig_mod.fc.weight", "fc.weight"]

    assert plain_names(names) == {name: name for name in names}


def test_no_names_are_no_names():
    assert plain_names([]) == {}
