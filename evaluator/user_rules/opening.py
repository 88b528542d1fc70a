"""Opens a trial by its path, waiting for it to begin.

Source:
    smdebug-api.md, section 5; saved-format.md, section 11.1. Unlike the reference, it does not wait for ever.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from evaluator.clock import Clock
from evaluator.errors import InputError, StorageError
from evaluator.sources import detect
from evaluator.sources.base import Source
from evaluator.storage import open_store
from evaluator.trial.opening import explain_absence
from evaluator.user_rules.absent import absent
from evaluator.user_rules.exceptions import MissingCollectionFiles, SMDebugError, SMDebugRuntimeError, SMDebugTypeError
from evaluator.user_rules.logger import get_logger
from evaluator.user_rules.reader import Limits
from evaluator.user_rules.source_reader import SourceReader, StepRange
from evaluator.user_rules.surroundings import Surroundings, surroundings
from evaluator.user_rules.trial import Trial


class LocalTrial(Trial):
    """A trial in a local folder."""

    def __init__(
        self,
        name: str,
        dirname: str,
        range_steps: StepRange | None = None,
        parallel: bool = True,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
    ) -> None:
        """Wait for the trial to begin, and look once.

        Args:
            name: what to call it.
            dirname: its folder; `~` is expanded.
            range_steps: only global steps from the first number to before the second one; None leaves an end open.
            parallel: without meaning, as in the reference.
            check: without meaning, as in the reference.
            index_mode: must be true; steps are found by index files.
            cache: whether values are given as the same object each time.
        """
        del parallel, check
        self.trial_dir = os.path.expanduser(dirname)  # noqa: PTH111 - pathlib would change the path's spelling
        reader, around = _await_reader(self.trial_dir, range_steps, index_mode=index_mode)
        super().__init__(name, reader, around.clock, around.limits, cache=cache, range_steps=range_steps)
        # as it was written: the reference compares and shows it so
        self.path = self.trial_dir


class S3Trial(Trial):
    """A trial on S3."""

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: StepRange | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
    ) -> None:
        """Wait for the trial to begin, and look once.

        Args:
            name: what to call it.
            bucket_name: where it is.
            prefix_name: what its keys start with; empty for a whole bucket, and a slash at its end means nothing.
            range_steps: see LocalTrial.
            check: without meaning, as in the reference.
            index_mode: see LocalTrial.
            cache: see LocalTrial.
        """
        del check
        self.bucket_name = bucket_name
        self.prefix_name = prefix_name if prefix_name.endswith("/") or not prefix_name else f"{prefix_name}/"
        path = f"s3://{bucket_name}/{self.prefix_name}"
        reader, around = _await_reader(path, range_steps, index_mode=index_mode)
        super().__init__(name, reader, around.clock, around.limits, cache=cache, range_steps=range_steps)
        self.path = path


def create_trial(
    path: str | PurePath,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "/opt/ml/processing/outputs/",
    **kwargs: Any,
) -> Trial:
    """The trial at a path.

    Args:
        path: a local folder, or s3://BUCKET/PREFIX; blanks around it are taken away.
        name: what to call it; the last part of the path when it is not given.
        profiler: must be false; profiles are not read by this version.
        output_dir: of the profiler.
        kwargs: see LocalTrial and S3Trial.

    Raises:
        MissingCollectionFiles: the run has ended without a collections file of each worker.
        SMDebugRuntimeError: no trial has begun there for as long as the limit is.
        SMDebugError: S3 does not answer, or does not let us look.
    """
    del output_dir
    if isinstance(path, PurePath):
        path = str(path)
    if not isinstance(path, str):
        raise SMDebugTypeError(f"path: {path!r} is no text; the folder of a trial would be right")
    path = path.strip()
    if profiler:
        absent("profiler=True", "profiles are not read by this version")
    called = path.rpartition("/")[2] if name is None else name
    if path.startswith("s3://"):
        bucket, _, prefix = path.removeprefix("s3://").partition("/")
        return S3Trial(called, bucket, prefix, **kwargs)
    return LocalTrial(called, path, **kwargs)


def _await_reader(path: str, range_steps: StepRange | None, *, index_mode: bool) -> tuple[SourceReader, Surroundings]:
    """What reads the trial at the path, once it has begun."""
    if not index_mode:
        absent("index_mode=False", "steps are found by index files only")
    checked = _checked_range(range_steps)
    around = surroundings()
    try:
        source = _await_source(path, around.clock, around.limits)
    except StorageError as error:
        raise SMDebugError(error) from error
    return SourceReader(source, around.clock, around.limits, checked), around


def _checked_range(range_steps: StepRange | None) -> StepRange:
    """Begin and end of a range; what the reference asserts is asserted, so that its callers see the same."""
    if range_steps is None:
        return None, None
    right = "range_steps should be of the form (begin, end) where begin is less than end"
    ends = tuple(range_steps)
    if len(ends) != 2 or not all(end is None or (type(end) is int and end >= 0) for end in ends):
        raise AssertionError(right)
    begin, end = ends
    if begin is not None and end is not None and begin >= end:
        raise AssertionError(right)
    return begin, end


def _await_source(path: str, clock: Clock, limits: Limits) -> Source:
    """The run at the path, once its collections files are there.

    All workers' files are waited for, but no longer than for any other part of a missing worker.
    """
    try:
        store = open_store(path, clock)
    except InputError as error:
        raise SMDebugRuntimeError(str(error)) from error
    started = clock.monotonic()
    told = False
    while True:
        source = detect(store)
        waited = clock.monotonic() - started
        if source is not None:
            ended = source.ended()
            collections = source.collections()
            files = 0 if collections is None else len(collections.files)
            expected = 1 if collections is None else collections.num_workers or 1
            if files >= max(expected, 1) or (files and not ended and waited >= limits.quorum):
                # a fresh one, for which the collections are new once more
                return type(source)(store)
            if ended:
                raise MissingCollectionFiles
        if waited >= limits.opening:
            where = explain_absence(path, store) if source is None else f"{path}: has no collections file"
            raise SMDebugRuntimeError(f"{where} (waited {waited:.0f} s)")
        if not told:
            get_logger().info("Waiting for a trial to begin at %s", path)
            told = True
        clock.wait(limits.poll)
