"""The Dask engine: reading and summarising on the workers of a Dask cluster, everything else in the job.

Its modules are imported where this engine is chosen, since most jobs go without it.
"""

from __future__ import annotations

from importlib.util import find_spec

from evaluator.errors import InputError, Mistake


def missing_dask() -> InputError | None:
    """What to install where Dask is missing."""
    if find_spec("distributed") is not None:
        return None
    what = "dask needs a package that is not installed (distributed)"
    return InputError([Mistake("engine", what, "pip install 'rule-evaluator[dask]'")])
