"""What tests of the container's contract start from."""

from __future__ import annotations

import pytest

from tests.container.below_opt_ml import Container


@pytest.fixture
def container(tmp_path, monkeypatch, capsys):
    (tmp_path / "ml").mkdir()
    return Container(tmp_path / "ml", monkeypatch, capsys)
