"""Checkpoints: their keys are read, their values never, and no pickle is opened."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import Mistake
from evaluator.sagemaker.diagnose import Found, Inputs, Ok, unexpected_prefix
from evaluator.sagemaker.diagnose._checkpoints import Checkpoint, read_checkpoint
from tests.sagemaker.diagnose.examples import of


def safetensors(path: Path, keys: list[str], data: bytes = b"\x00" * 4) -> str:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    header |= {key: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for key in keys}
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)
    return str(path)


def mistake(path: Path) -> str:
    read = read_checkpoint(str(path))
    assert isinstance(read, Mistake)
    return str(read)


def test_the_keys_of_safetensors_are_those_of_its_header(tmp_path: Path):
    path = safetensors(tmp_path / "model.safetensors", ["module.fc.weight", "module.fc.bias"])

    assert read_checkpoint(path) == Checkpoint(path, ("module.fc.weight", "module.fc.bias"))


@pytest.mark.parametrize(
    "text",
    ['["a", "b"]', '{"a": 1, "b": 2}', '{"metadata": {}, "weight_map": {"a": "1.st", "b": "2.st"}}', ' ["a","b"]'],
)
def test_the_keys_of_json_are_those_of_a_list_an_object_or_an_index(tmp_path: Path, text: str):
    path = tmp_path / "keys.json"
    path.write_text(text)
    read = read_checkpoint(str(path))

    assert isinstance(read, Checkpoint)
    assert read.keys == ("a", "b")


@given(st.lists(st.text(max_size=20), unique=True, max_size=20))
def test_all_keys_come_back(tmp_path_factory: pytest.TempPathFactory, keys: list[str]):
    kept = [key for key in keys if key != "__metadata__"]
    path = safetensors(tmp_path_factory.mktemp("keys") / "model.safetensors", kept)
    read = read_checkpoint(path)

    assert isinstance(read, Checkpoint)
    assert read.keys == tuple(kept)


class Bomb:
    """Something that leaves a trace when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_never_opened(tmp_path: Path):
    trace = tmp_path / "trace"
    plain, zipped = tmp_path / "model.pkl", tmp_path / "model.pt"
    plain.write_bytes(pickle.dumps(Bomb(trace)))
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Bomb(trace)))

    for path in (plain, zipped):
        assert "is a pickle, which is never opened, since it may run anything; expected a .safetensors" in mistake(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (struct.pack("<Q", 1000) + b'{"a": 1', "ends within its header of 1000 bytes"),
        (struct.pack("<Q", 2**31) + b"{", "where safetensors allows"),
        (b"hello, this is text", "is no checkpoint in the format of safetensors"),
        (b"", "is not strict JSON"),
        (b"[1, 2]", "is no list of keys"),
        (b"[" * 100_000, "is not strict JSON"),
        (struct.pack("<Q", 9) + b'{"a": NaN', "is not strict JSON"),
    ],
)
def test_what_is_no_checkpoint_is_told_in_one_line(tmp_path: Path, data: bytes, expected: str):
    path = tmp_path / "x"
    path.write_bytes(data)

    assert expected in mistake(path)
    assert "\n" not in mistake(path)


def test_a_header_is_cut_anywhere_without_anything_but_a_mistake(tmp_path: Path):
    whole = Path(safetensors(tmp_path / "whole", ["a", "b"], b"")).read_bytes()
    path = tmp_path / "cut"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])

        assert isinstance(read_checkpoint(str(path)), Mistake)


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path):
    assert "there is no such file" in mistake(tmp_path / "none")
    assert "cannot be read" in mistake(tmp_path)


def test_the_mapping_is_shown(tmp_path: Path):
    path = safetensors(tmp_path / "model.safetensors", [f"module._orig_mod.l{at}.weight" for at in range(9)])
    result = of(unexpected_prefix.CHECK, Inputs(checkpoints=[path]))

    assert isinstance(result, Found)
    assert result.what == f"parameters carry the prefix of a wrapper: 9 of 9 names in {path}"
    assert result.evidence[0] == f"{path}: module._orig_mod.l0.weight -> l0.weight"
    assert result.evidence[-1] == f"{path}: ... (9 in all)"


def test_two_checkpoints_that_agree_are_no_finding(tmp_path: Path):
    paths = [safetensors(tmp_path / name, ["model.a", "model.b"]) for name in ("one", "two")]

    assert isinstance(of(unexpected_prefix.CHECK, Inputs(checkpoints=paths)), Ok)


def test_no_two_keys_become_one(tmp_path: Path):
    one, other = safetensors(tmp_path / "one", ["model.fc", "fc"]), safetensors(tmp_path / "other", ["fc"])

    assert isinstance(of(unexpected_prefix.CHECK, Inputs(checkpoints=[one, other])), Ok)


def test_a_key_of_any_length_is_shown_in_one_short_line(tmp_path: Path):
    path = safetensors(tmp_path / "model.safetensors", ["module." + "x" * 100_000])
    result = of(unexpected_prefix.CHECK, Inputs(checkpoints=[path]))

    assert isinstance(result, Found)
    assert len(result.evidence[0]) < 1000
