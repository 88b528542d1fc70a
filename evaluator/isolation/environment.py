"""The environment of a rule's process: that of the job, without what a rule file has no business with."""

from __future__ import annotations

import os
import re

_SECRET = re.compile(
    r"^AWS_|^RULE_EVALUATOR_|KEY|TOKEN|SECRET|PASS(WORD|WD|PHRASE)|CREDENTIAL|WEBHOOK|AUTH", re.IGNORECASE
)


def clean_environment() -> dict[str, str]:
    """The variables without credentials, secrets, and what is meant for the job alone."""
    return {name: value for name, value in os.environ.items() if not is_secret(name)}


def is_secret(variable: str) -> bool:
    """Whether a variable of this name is kept from rule files."""
    return _SECRET.search(variable) is not None
