"""The coverage-guided half: atheris changes inputs so that they reach code that no other input reached.

    python -m tests.fuzz.guided TARGET FOLDER -max_total_time=60 [other options of libFuzzer]

What atheris saves of a failing case is in FOLDER/found, what it learned in FOLDER/corpus.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore] # has no wheel for every Python, so it is not in the lock

LONGEST = 65_536
"""Bytes of an input; longer ones are slower and show nothing more."""


def main() -> None:
    """Fuzz one target until the time is over or a case fails."""
    with atheris.instrument_imports(include=["evaluator"]):
        from tests.fuzz.bounds import bounded  # noqa: PLC0415 - imports are what is instrumented
        from tests.fuzz.seeds import seeds  # noqa: PLC0415
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415
    name, folder = sys.argv[1], Path(sys.argv[2])
    target = TARGETS[name]
    corpus, found = folder / "corpus", folder / "found"
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds()[name]):
        (corpus / f"seed{number}").write_bytes(data)
    # instrumented code is slower by about half
    options = [
        f"-artifact_prefix={found}/",
        f"-max_len={LONGEST}",
        "-print_final_stats=1",
        "-verbosity=0",
        "-rss_limit_mb=1500",
    ]
    atheris.Setup(
        [sys.argv[0], *options, *sys.argv[3:], str(corpus)], lambda data: bounded(target.case, data, 2 * target.seconds)
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
