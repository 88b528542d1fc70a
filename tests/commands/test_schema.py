"""schema: prints what the files of a job are made of."""

from __future__ import annotations

import pytest

from evaluator.status import schema
from tests.commands.program import call


@pytest.mark.parametrize("kind", ["status", "finding"])
def test_the_schema_is_printed(capsys, kind):
    ran = call(capsys, "schema", kind)

    assert (ran.code, ran.document) == (0, schema(kind))


def test_another_kind_has_none(capsys):
    ran = call(capsys, "schema", "findings")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "schema: 'findings' has none; did you mean 'finding'? expected one of: finding, status\n"
