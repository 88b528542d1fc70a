"""What the program does not spend its start on: short runs are mostly imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.commands.program import DEADLINE, HEALTHY, small_trial

RUN = """
import gc
import sys
from pathlib import Path
from evaluator.__main__ import main
_, loaded, *sys.argv[1:] = sys.argv
try:
    main()
finally:
    Path(loaded).write_text(" ".join(sys.modules))
    assert gc.isenabled()
    assert gc.get_freeze_count()
"""

NOT_FOR_A_RUN = (
    # the live line of a terminal
    *("rich.progress", "rich.file_proxy"),
    # for configuration files, S3 and clusters
    *(
        "tomllib",
        "evaluator.storage.s3",
        "evaluator.storage._single",
        "boto3",
        "botocore",
        "s3fs",
        "dask",
        "distributed",
    ),
    # for actions and reports
    *("http.client", "urllib.request", "evaluator.actions.webhook", "matplotlib", "jinja2"),
    # other commands and other rules
    *("evaluator.commands.check", "evaluator.commands.watch", "builtin_rules.losses.overfit"),
)


def test_a_run_of_a_local_trial_imports_only_what_it_uses(tmp_path):
    listed, trial = tmp_path / "modules", small_trial(tmp_path / "trial", [HEALTHY] * 8)
    rule = ["--rule", "VanishingGradient", "--output", str(tmp_path / "out")]

    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(listed), "run", str(trial), *rule],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )

    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    modules = set(listed.read_text().split())
    assert sorted(modules.intersection(NOT_FOR_A_RUN)) == []
    assert modules >= {"builtin_rules.gradients.vanishing_gradient", "rich.table", "structlog", "numpy"}
