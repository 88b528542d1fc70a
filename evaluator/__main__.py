"""Starts the program: `python -m evaluator` and the console script `rule-evaluator`."""

from __future__ import annotations

import sys

from evaluator.cli import run_command_line


def main() -> None:
    """Run the command line and exit with its code; the only exit of the program."""
    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
