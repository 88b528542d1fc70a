"""The logger that rules write to: on standard output, each message at most three times.

Source:
    smdebug-api.md, section 8. Unlike the reference, handlers that somebody else put there stay.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict

from evaluator.user_rules import environment

REPEATS = 3
KNOWN_MESSAGES = 1000
"""Messages that are counted; ours, the reference keeps every one for ever."""

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "off": logging.CRITICAL + 1,
}


class DuplicateLogFilter(logging.Filter):
    """Lets each message through a few times only."""

    def __init__(self, repeats: int = REPEATS) -> None:
        """Know no message yet."""
        super().__init__()
        self._repeats = repeats
        self._seen: OrderedDict[str, int] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message was not seen too often."""
        message = record.getMessage()
        count = self._seen.pop(message, 0) + 1
        self._seen[message] = count
        if len(self._seen) > KNOWN_MESSAGES:
            self._seen.popitem(last=False)
        return count <= self._repeats


def get_logger(name: str = "smdebug") -> logging.Logger:
    """The logger "smdebug", set up at the first call."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, DuplicateLogFilter) for one in logger.filters):
        logger.addFilter(DuplicateLogFilter())
        logger.propagate = False
        logger.setLevel(_LEVELS.get((environment.text(environment.LEVEL) or "info").lower(), logging.INFO))
        if not logger.handlers:
            handler = logging.StreamHandler(sys.stdout)
            handler.setFormatter(logging.Formatter("[%(asctime)s %(levelname)s %(filename)s:%(lineno)d] %(message)s"))
            logger.addHandler(handler)
    return logger
