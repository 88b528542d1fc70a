"""Starts the program: `python -m evaluator` and the console script `rule-evaluator`."""

from __future__ import annotations

import sys

from evaluator.first_process import is_first, stand_before


def main() -> None:
    """Run the command line and exit with its code; the only exit of the program."""
    if is_first():
        stand_before()
    # not before: the process that stands before the program should stay small
    from evaluator.cli import run_command_line  # noqa: PLC0415

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
