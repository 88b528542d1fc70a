"""The one environment variable that says where S3 is and that boto3 does not read itself.

Source:
    boto3's guide, "Using environment variables": it reads AWS_DEFAULT_REGION; SageMaker's containers have AWS_REGION.
"""

from __future__ import annotations

import os


def region() -> str | None:
    """The region that the environment names; None when it names none."""
    return os.environ.get("AWS_REGION", "").strip() or None
