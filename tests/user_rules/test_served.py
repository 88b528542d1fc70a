"""The module names under which rule files import the API."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from evaluator.user_rules import served_path
from tests.user_rules.served_process import run_served

IMPORTS = """
from smdebug.rules.rule import Rule
from smdebug.rules import Rule, invoke_rule, RequiredTensors, RequiredTensorsForTrial
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.exceptions import *
from smdebug.trials import create_trial, LocalTrial, S3Trial, Trial
from smdebug.trials.utils import create_trial
from smdebug import modes, CollectionKeys, SaveConfig, SaveConfigMode, ReductionConfig, __version__
from smdebug.core.modes import ModeKeys, str_to_mode_keys
from smdebug.core.tensor import StepState
from smdebug.core.collection import CollectionKeys, Collection
from smdebug.core.logger import get_logger
from smdebug.core.reductions import get_numpy_reduction, get_basic_numpy_reduction, REDUCTIONS_PREFIX
from smdebug.core.reduction_config import ALLOWED_REDUCTIONS, ALLOWED_NORMS
from smdebug.core.access_layer.s3handler import S3Handler, ReadObjectRequest, ListRequest
from smdebug.core.utils import is_s3, match_inc, make_numpy_array, flatten, index
from smdebug.analysis.utils import no_refresh, refresh, parse_list_from_str, parse_bool
from smdebug.core.reader import FileReader
from smdebug.core.writer import FileWriter
from smdebug.profiler.utils import TimeUnits
import smdebug.pytorch as a, smdebug.tensorflow as b, smdebug.mxnet as c, smdebug.xgboost as d
"""
"""Source: smdebug-api.md, section 0."""


def test_every_import_that_needs_no_framework_works_without_one():
    check = f"""{IMPORTS}
import smdebug, sys
for framework in (a, b, c, d):
    framework.modes, framework.create_trial, framework.CollectionKeys, framework.SaveConfig
assert smdebug.modes is ModeKeys is modes is a.modes
a.ReductionConfig, b.ReductionConfig, c.ReductionConfig
loaded = {{"torch", "tensorflow", "mxnet", "xgboost", "boto3", "pandas", "google.protobuf"}} & set(sys.modules)
print(__version__, sorted(loaded))
"""

    assert run_served("-c", check).startswith("1.0.34+rule.evaluator.0")
    assert run_served("-c", check).endswith("[]\n")


def test_the_tests_own_process_has_no_smdebug():
    assert [name for name in sys.modules if name.partition(".")[0] == "smdebug"] == []


@pytest.mark.parametrize("path", sorted(Path(served_path()).rglob("*.py")), ids=lambda path: path.name)
def test_a_served_module_holds_only_imports_and_its_names(path: Path):
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = [type(node).__name__ for node in body[1:]]

    assert isinstance(body[0], ast.Expr)
    assert set(kinds[:-1]) <= {"ImportFrom"}
    assert kinds[-1] in {"Assign", "AnnAssign"}
