"""The environment variables that the reference reads and that still mean something here.

Source:
    smdebug-api.md, section 11.
"""

from __future__ import annotations

import os

WINDOW = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
RETRIES = "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"
END_DELAY = "SMDEBUG_TRAINING_END_DELAY_REFRESH"
LEVEL = "SMDEBUG_LOG_LEVEL"
REGION = "AWS_REGION"
STOP_SIGNAL = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
STOP_GRACE = "rule_stop_grace_time_secs"


def number(name: str) -> float | None:
    """The number in a variable; None when it is not set or no number of 0 or more."""
    try:
        value = float(os.environ.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def text(name: str) -> str | None:
    """The text in a variable; None when it is not set or blank."""
    return os.environ.get(name, "").strip() or None
