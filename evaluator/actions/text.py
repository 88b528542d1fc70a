"""Actions as SageMaker writes them: a JSON text, in which the quotes are escaped or not.

Source:
    processing-contract.md, section 2.4, and smdebug-api.md, section 10: the SDK sends quotes escaped, to be pasted into
    a Python text. Unlike there, nothing is ever run, and values keep their case.
"""

from __future__ import annotations

import json

ACTIONS_KEY = "actions"
"""Where the details of a finding tell the actions that a rule's own file asks for."""


def parse_actions(text: str) -> list[object]:
    """The entries of the text, which may be a list or one of them; none where it is blank.

    Raises:
        ValueError: it is not JSON in either spelling.
    """
    if not text.strip():
        return []
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        try:
            parsed = json.loads(text.replace('\\"', '"'))
        except (ValueError, RecursionError):
            raise error from None
    return parsed if isinstance(parsed, list) else [parsed]


def named_values(entry: object) -> dict[str, object] | None:
    """Key -> value of one entry, keys and the name of the action in lower case; None where it is no object."""
    if not isinstance(entry, dict):
        return None
    given = {str(key).lower(): value for key, value in entry.items()}
    given["name"] = str(given.get("name", "")).strip().lower()
    return given
