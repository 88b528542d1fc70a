"""Users' own rule files: the API that they were written against, each class defined once, here.

`served/` holds the module names under which rule files import it; its folder goes on the path of the rule's own
process only, so that nobody's installed smdebug is hidden.
"""

from __future__ import annotations

from pathlib import Path


def served_path() -> str:
    """The folder to put on `sys.path` so that `import smdebug` means the classes of this package."""
    return str(Path(__file__).parent / "served")
