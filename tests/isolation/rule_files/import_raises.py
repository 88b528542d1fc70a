# mypy: ignore-errors
"""Cannot be imported."""

import no_such_package_anywhere
