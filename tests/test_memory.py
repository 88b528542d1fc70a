"""One step can be larger than the memory: it is read in pieces, and what does not fit is a problem of its file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration
from evaluator.errors import StorageUnavailable
from evaluator.formats.event import encode_event
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.key_names import event_key, index_key
from evaluator.formats.tfrecord import frame, masked_crc
from evaluator.modes import Mode
from evaluator.needs import Beside, Measure, OtherWorker, Partner, Previous, Selection, Summary
from evaluator.rule import LoopParameters, Rule, RuleParameters
from evaluator.segments import Floats, Segments
from evaluator.sources import event_reading
from evaluator.sources.event_reading import AT_ONCE, SPLIT_GAP
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.file import FileStore
from evaluator.testing import ExampleResult, FakeClock, evaluate
from evaluator.writer import TrialWriter
from tests.saved_run import SavedRun
from tests.sources.contract import opened, positions, same, values_of

MIB = 2**20
LOOP = LoopParameters.model_validate({})


class Noting(FileStore):
    """A folder that notes how many bytes are read at once."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[int] = []
        self.unavailable: set[str] = set()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        self.asked.append(length)
        if key in self.unavailable:
            raise StorageUnavailable(key, "no answer")
        return super().read_range(key, start, length)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three steps of two workers, with twenty tensors of 1 MiB and one of 6 MiB each."""
    folder = tmp_path_factory.mktemp("large")
    for worker in (0, 1):
        with TrialWriter(folder, worker=f"worker_{worker}", num_workers=2) as writer:
            for step in range(3):
                values = {f"w{at}": np.full(MIB // 4, 100 * worker + 10 * step + at, np.float32) for at in range(20)}
                writer.save(step, {**values, "text": np.array(["a"]), "x": np.full(6 * MIB // 4, step, np.float32)})
    return folder


def difference(segments: Segments, other: Segments) -> Floats:
    return segments.max(segments.flat) - other.max(other.flat)


def rows_of(source: SmdebugFolder, budget: int, partner: Partner | None = None) -> tuple[list[Any], ExampleResult]:
    """What a rule is given, and what came of it."""
    rows: list[Any] = []
    by = "max" if partner is None else Measure(difference)
    need = Summary(Selection(regexes=("^[wx]",)), by=by, partner=partner)
    condition = lambda window, _: rows.append(window.values[-1].tolist())  # noqa: E731 - one line in all
    rule = Rule("Sees", "error", RuleParameters, lambda _: [need], condition)
    configuration = RuleConfiguration("Sees", rule, RuleParameters(), LOOP, "error")
    return rows, evaluate(source, [configuration], budget)


PARTNERS: dict[str, Partner | None] = {
    "none": None, "earlier": Previous(), "reaching back": Previous(within=2), "another worker": OtherWorker(),
    "beside": Beside(Selection(regexes=("^w1",))),
}  # fmt: skip


@pytest.mark.parametrize("partner", PARTNERS.values(), ids=PARTNERS)
def test_a_step_larger_than_the_budget_is_read_in_pieces_and_gives_the_same(large: Path, partner: Partner | None):
    """Four steps of 960 MB took 4 GB, with a budget of 256 MiB: a step was read as one stretch, whatever its size."""
    generous, tight = Noting(large), Noting(large)
    expected, _ = rows_of(SmdebugFolder(generous), 2**30, partner)
    rows_of(SmdebugFolder(Noting(large)), 2**24, partner)
    tracemalloc.start()
    try:
        rows, result = rows_of(SmdebugFolder(tight), 2**24, partner)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (str(rows), result.status.job.steps.unreadable) == (str(expected), 0)  # NaN equals NaN
    assert max(tight.asked) < 6 * MIB + 1000
    # two threads with the largest tensor each, or two of them that are compared and copied for that
    assert peak < 2**24 + 4 * 6 * MIB


def test_no_request_is_larger_than_needed_even_for_a_file_that_fits(tmp_path: Path):
    """A gap below 1 MiB is read over; many of them make a stretch of any length."""
    records = [
        frame(encode_event(f"t{at}", np.full(10, at), step=0, mode=Mode.TRAIN, mode_step=0, wall_time=1.0))
        for at in range(40)
    ]
    gap = SPLIT_GAP - 1000
    starts = np.array([at * gap for at in range(40)])
    lengths = np.array([len(record) for record in records])
    store = Noting(tmp_path)
    store.write("events/x", b"".join(record.ljust(gap, b"\0") for record in records))
    index = IndexFile(Mode.TRAIN, 0, "events/x", tuple(f"t{at}" for at in range(40)), starts, lengths, ())
    store.write(index_key(0, "w"), encode_index(index))
    source = SmdebugFolder(store)
    (file,) = opened(source)
    read = source.read(file, [positions(file, *(f"t{at}" for at in range(40)))])

    assert (len(read.arrays()), read.problems) == (40, {})
    assert (max(store.asked) <= AT_ONCE, len(store.asked)) == (True, 3)


@pytest.mark.parametrize("seed", range(30))
def test_wherever_a_file_is_split_its_values_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch):
    dice = random.Random(seed)  # noqa: S311 - a repeatable choice is what is wanted
    run = SavedRun(FakeClock())
    values = {f"t{at}": np.full(dice.choice([1, 10, 300]), at) for at in range(30)}
    run.save(0, values=values)
    monkeypatch.setattr(event_reading, "SPLIT_GAP", dice.choice([1, 500, 5000]))
    monkeypatch.setattr(event_reading, "AT_ONCE", dice.choice([1, 200, 1000, 10_000]))
    source = SmdebugFolder(run.store)
    (file,) = opened(source)
    names = dice.sample(sorted(values), 20)
    groups = [positions(file, *names[:7]), positions(file, *names[7:])]
    read = source.read(file, groups)

    assert read.problems == {}
    assert same(
        {file.layout.names[at]: value for at, value in read.arrays().items()}, {name: values[name] for name in names}
    )
    assert same(values_of(source, file), values)


def sparse(folder: Path, length: int, count: int, *, header: bytes = b"", size: int = 2**40) -> Noting:
    """A trial whose index file promises long records in an event file that has nothing but holes."""
    store = Noting(folder)
    store.write("events/x", header)
    os.truncate(folder / "events/x", size)
    names = tuple(f"w{at}" for at in range(count))
    starts, lengths = np.arange(count) * length, np.full(count, length)
    index = IndexFile(Mode.TRAIN, 0, "events/x", names, starts, lengths, ())
    store.write(index_key(0, "worker_0"), encode_index(index))
    return store


@pytest.mark.parametrize("length", [AT_ONCE + 1, 2**31 - 1])
def test_a_false_length_is_found_by_the_header_before_the_record_is_read(tmp_path: Path, length: int):
    """A sparse event file with index lengths of 2**31 - 1 took 8.4 GB."""
    store = sparse(tmp_path, length, 4)
    _, result = rows_of(SmdebugFolder(store), 2**28)

    assert max(store.asked) == 12
    assert result.status.job.steps.unreadable == 1
    assert any("4 tensors not read: events/x" in note and "checksum" in note for note in result.status.job.notes)


def test_a_true_header_in_a_file_that_is_too_short_is_a_problem(tmp_path: Path):
    header = frame(bytes(2**25))[:12]
    store = sparse(tmp_path, 2**25 + 16, 1, header=header, size=2**25)
    _, result = rows_of(SmdebugFolder(store), 2**28)

    assert max(store.asked) == 12
    assert any("ends 16 bytes early" in note for note in result.status.job.notes)


def test_a_tensor_larger_than_the_budget_is_read_where_it_is_what_the_index_says(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"w": np.arange(2**23, dtype=np.float32)})
    rows, _ = rows_of(SmdebugFolder(Noting(tmp_path)), 2**22)

    assert rows == [[2**23 - 1]]


def test_what_does_not_fit_in_memory_is_a_problem_of_its_file_and_the_job_goes_on(tmp_path: Path):
    """A MemoryError ended the job."""
    with TrialWriter(tmp_path) as writer:
        writer.save(1, {"w": np.ones(3)})
    length = (2**30).to_bytes(8, "little")
    header = length + masked_crc(length).to_bytes(4, "little")
    sparse(tmp_path, 2**30 + 16, 1, header=header, size=2**30 + 16)
    program = """
        import json, resource, sys
        from pathlib import Path
        from evaluator.sources.smdebug_folder import SmdebugFolder
        from tests.test_memory import Noting, rows_of
        size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
        resource.setrlimit(resource.RLIMIT_AS, (1024 * size + 2**29, resource.RLIM_INFINITY))
        rows, result = rows_of(SmdebugFolder(Noting(Path(sys.argv[1]))), 2**28)
        print(json.dumps([rows, result.status.job.steps.unreadable, result.status.job.notes]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1],
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert '[[[NaN, 1.0]], 1, ["step 0, worker_0: 1 tensor not read: events/x: ' in done.stdout
    assert "do not fit in memory" in done.stdout


def test_a_measure_that_runs_out_of_memory_is_not_the_rule_s_fault():
    run = SavedRun(FakeClock())
    run.announce()
    for step in (0, 1):
        run.save(step, values={"w": np.full(3, step)})

    def greedy(segments: Segments) -> Floats:
        if segments.flat[0] == 0:
            raise MemoryError
        return segments.max(segments.flat)

    need = Summary(Selection(), by=Measure(greedy))
    rule = Rule("Greedy", "error", RuleParameters, lambda _: [need], lambda *_: None)
    configuration = RuleConfiguration("Greedy", rule, RuleParameters(), LOOP, "error")
    result = evaluate(SmdebugFolder(run.store), [configuration])

    assert (result.word, result.evaluated, result.status.job.steps.unreadable) == ("NoIssuesFound", 1, 1)


def test_a_store_that_does_not_answer_for_an_earlier_value_is_no_error_of_the_rule(large: Path):
    """A StorageUnavailable while an earlier value was read again ended as the rule's own error."""
    store = Noting(large)
    source = SmdebugFolder(store)
    read = source.read

    def read_earlier(file: Any, groups: Any) -> Any:
        # while step 1 is judged, step 0 cannot be read any more; steps are read ahead by other threads
        if file.step == 0 and threading.current_thread() is threading.main_thread():
            store.unavailable.add(event_key(0, file.worker))
        return read(file, groups)

    source.read = read_earlier  # type: ignore[method-assign]
    _, result = rows_of(source, 2**24, Previous())
    status = result.status.DebugRuleEvaluationStatuses[0]

    assert (result.word, result.evaluated, result.status.job.steps.unreadable) == ("NoIssuesFound", 1, 1)
    assert status.Evaluation.skipped_because == {"a value to compare with could not be read": 1}
    assert any("no answer" in note for note in result.status.job.notes)
