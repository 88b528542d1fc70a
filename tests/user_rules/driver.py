"""Runs rule files in a process of its own, where `smdebug` means the served modules: `python driver.py JOBS`.

A job is {"file", "class", "trial", "parameters", "folder"}; what came of each is written to standard output as JSON.
"""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys


def run(job):
    from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet  # noqa: PLC0415 - part of what is tried
    from smdebug.rules import invoke_rule  # noqa: PLC0415
    from smdebug.trials import create_trial  # noqa: PLC0415

    os.chdir(job.get("folder") or ".")
    spec = importlib.util.spec_from_file_location("rule_file", job["file"])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if job["class"] == "PoorInitialization":
            return {"found": module.PoorInitialization(job["trial"]).look()}
        rule = getattr(module, job["class"])(create_trial(job["trial"]), **job.get("parameters", {}))
        invoke_rule(rule, raise_eval_cond=True)
    except RuleEvaluationConditionMet as error:
        return {"met_at": error.step}
    except NoMoreData:
        return {"met_at": None, "found": getattr(rule, "found", None)}
    except Exception as error:  # noqa: BLE001 - whatever a rule file raises
        return {"raised": type(error).__name__, "text": str(error)}
    return {}


def main(jobs):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        results = {name: run(job) for name, job in jobs.items()}
    json.dump({"results": results, "said": said.getvalue()}, sys.stdout)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
