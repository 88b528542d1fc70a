"""The Dask engine comes to the same as the local one, whatever is read where."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster

from evaluator.config.load import Arguments, load
from evaluator.config.settings import resolve_settings
from evaluator.engine.distributed.connection import Workers
from evaluator.engine.distributed.engine import DaskEngine
from evaluator.engine.distributed.shipping import COMPARED, FOR_RULE_FILES, Lot, Shipping, lot_of
from evaluator.engine.distributed.tasks import Answer, Batch, Reading, summarise_batch
from evaluator.engine.local import LocalEngine
from evaluator.engine.summaries import FileSummary, StepSummary
from evaluator.errors import InputError
from evaluator.file_plan import FilePlan, Group
from evaluator.modes import Mode
from evaluator.needs import Measure, named
from evaluator.sources.base import StepFile
from evaluator.storage import open_store
from evaluator.trial.opening import open_run
from evaluator.trial.step import Step
from evaluator.writer import TrialWriter
from tests.commands.program import call
from tests.engine.dask_jobs import cluster, faulty_run, run
from tests.isolation.jobs import FILES

ROOT = Path(__file__).parents[2]
TRIALS = sorted(
    path
    for folder in (ROOT / "tests" / "data" / "trials", ROOT.parent / "shared" / "trials")
    if folder.is_dir()
    for path in folder.iterdir()
    if path.is_dir()
)
BUDGET = 2**28


@pytest.fixture(scope="module")
def two() -> Iterator[LocalCluster]:
    """Two workers for the tests that leave them alone."""
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty_run(tmp_path_factory.mktemp("faulty") / "run")


@pytest.mark.parametrize("trial", TRIALS, ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_verdicts_and_findings_are_those_of_the_local_engine(trial, tmp_path, two):
    local = run(trial, tmp_path / "local")

    spread = run(trial, tmp_path / "dask", two.scheduler_address)

    assert spread == local


def test_a_faulty_run_comes_to_the_same(faulty, tmp_path, two):
    local = run(faulty, tmp_path / "local")

    spread = run(faulty, tmp_path / "dask", two.scheduler_address)

    assert spread == local
    assert len({finding["rule"] for finding in spread.findings}) >= 4


def test_the_job_itself_reads_no_event_file(faulty, two):
    source = open_run(str(faulty))
    workers = Workers(two.scheduler_address, 60, lambda: False)
    engine = DaskEngine(source, BUDGET, workers)
    plans = Plans()
    files = [source.open(sighting)[0] for sighting in source.sightings()]
    source.store.read_range = source.store.read = None  # type: ignore[assignment, method-assign]

    summaries = list(engine.ahead((Step(file.step, [file]) for file in files), plans.of))

    engine.close()
    workers.close()
    assert [one.step.number for one in summaries] == [file.step for file in files]
    assert all(
        one.files[0].measured[ABS_MEAN].present[: len(one.files[0].plan.layout.names)].any() for one in summaries
    )
    assert engine.notes == []
    assert source.store.requests.get >= 2 * len(files)


def test_steps_are_taken_only_so_far_ahead(tmp_path, two):
    with TrialWriter(tmp_path / "run") as writer:
        for step in range(16):
            writer.save(step, {"a": np.full(2**21, step, np.float32)}, mode=Mode.TRAIN, mode_step=step)
    source = open_run(str(tmp_path / "run"))
    workers = Workers(two.scheduler_address, 60, lambda: False)
    engine = DaskEngine(source, BUDGET, workers)
    taken: list[int] = []

    def steps() -> Iterator[Step]:
        for sighting in source.sightings():
            taken.append(sighting.step)
            yield Step(sighting.step, list(source.open(sighting)))

    ahead = [len(taken) - 1 - one.step.number for one in engine.ahead(steps(), Plans().of)]

    engine.close()
    workers.close()
    # one task at work and one ready for each of two threads, one that is handed out, and one that waits for room
    assert max(ahead) <= 6
    assert len(taken) == 16


def test_values_that_are_compared_come_back_where_they_are_few(faulty, tmp_path, two):
    rules = ["UnchangedTensor", "WeightUpdateRatio", "WorkersDiverge"]

    spread = run(faulty, tmp_path / "dask", two.scheduler_address, rules=rules)

    assert spread == run(faulty, tmp_path / "local", rules=rules)
    assert {finding["rule"] for finding in spread.findings} >= {"UnchangedTensor", "WorkersDiverge"}


def test_large_values_that_are_compared_are_read_by_the_job_which_says_so(tmp_path, two):
    trial = faulty_run(tmp_path / "run", steps=12, elements=2**16)
    rules = ["UnchangedTensor:consecutive=3", "WorkersDiverge", "VanishingGradient"]

    spread = run(trial, tmp_path / "dask", two.scheduler_address, rules=rules)

    assert spread.verdict == run(trial, tmp_path / "local", rules=rules).verdict
    assert spread.notes == [f"dask: 12 steps were read by the job itself: {COMPARED}"]


def test_rules_of_files_get_all_values_from_the_job(faulty, tmp_path, two):
    rule_files = [f"{FILES / 'large_gradient.py'}"]
    rules = ["VanishingGradient"]

    spread = run(faulty, tmp_path / "dask", two.scheduler_address, rules=rules, rule_files=rule_files)

    assert spread.verdict == run(faulty, tmp_path / "local", rules=rules, rule_files=rule_files).verdict
    assert spread.notes == [f"dask: 150 steps were read by the job itself: {FOR_RULE_FILES}"]


def test_a_log_is_read_by_the_job(tmp_path, two):
    (tmp_path / "log.csv").write_text("step,loss\n" + "".join(f"{step},{1 + step % 2}\n" for step in range(60)))

    spread = run(tmp_path / "log.csv", tmp_path / "dask", two.scheduler_address)

    assert spread.verdict == run(tmp_path / "log.csv", tmp_path / "local").verdict
    assert spread.notes == ["dask: 60 steps were read by the job itself: it is a log, which the job has in memory"]


def test_a_damaged_file_is_told_as_the_local_engine_tells_it(tmp_path, two):
    trial = faulty_run(tmp_path / "run", steps=30)
    for step in (7, 20):
        (event,) = (trial / "events").glob(f"*/{step:012}_worker_0.tfevents")
        event.write_bytes(event.read_bytes()[:200])

    spread = run(trial, tmp_path / "dask", two.scheduler_address)

    assert spread.verdict == run(trial, tmp_path / "local").verdict
    assert spread.steps["unreadable"] or spread.steps["problems"]
    assert spread.notes[-1] == "dask: 2 steps were read by the job itself: a worker could not read or compute all of it"


def test_a_trial_that_workers_do_not_have_is_read_by_the_job(faulty, tmp_path, two):
    def hide(uri: str) -> list[str]:
        source = open_run(str(faulty))
        source.store.uri = uri
        workers = Workers(two.scheduler_address, 60, lambda: False)
        engine = DaskEngine(source, BUDGET, workers)
        steps = (Step(one.step, list(source.open(one))) for one in source.sightings())
        means = [one.files[0].measured[ABS_MEAN].values for one in engine.ahead(steps, Plans().of)]
        engine.close()
        workers.close()
        found.append(np.array(means))
        return engine.notes

    found: list[np.ndarray] = []

    assert hide(str(faulty)) == []
    assert hide(str(tmp_path / "elsewhere")) == [
        "dask: 300 steps were read by the job itself: a worker could not read or compute all of it"
    ]
    assert np.array_equal(found[0], found[1], equal_nan=True)


def test_a_function_that_raises_is_told_with_its_traceback(faulty, two):
    source = open_run(str(faulty))
    workers = Workers(two.scheduler_address, 60, lambda: False)
    engine = DaskEngine(source, BUDGET, workers)
    raising = Measure(lambda segments: len(segments) // 0)
    sighting = source.sightings()[0]

    (summary,) = engine.ahead([Step(0, list(source.open(sighting)))], Plans(raising).of)

    engine.close()
    workers.close()
    assert "ZeroDivisionError" in summary.files[0].failures[raising]


def test_a_function_without_a_name_is_taken_along(faulty, two):
    source = open_run(str(faulty))
    workers = Workers(two.scheduler_address, 60, lambda: False)
    engine = DaskEngine(source, BUDGET, workers)
    factor = 3.0
    mine = Measure(lambda segments: segments.max(segments.real) * factor)
    sighting = source.sightings()[5]

    (summary,) = engine.ahead([Step(5, list(source.open(sighting)))], Plans(mine).of)

    engine.close()
    workers.close()
    local = LocalEngine(source, BUDGET)
    again = local.again(summary)
    local.close()
    assert engine.notes == []
    assert np.array_equal(summary.files[0].measured[mine].values, again.files[0].measured[mine].values, equal_nan=True)


def test_s3_is_read_by_the_workers(upload, tmp_path):
    folder = faulty_run(tmp_path / "run", steps=60)
    trial = upload(folder, "run")
    local = run(trial, tmp_path / "local")
    # workers have the environment of those who start them
    with cluster(1) as one:
        spread = run(trial, tmp_path / "dask", one.scheduler_address)

    assert spread == local
    assert spread.findings


class TestTask:
    """A task by itself, in this process."""

    def test_plans_that_were_not_sent_are_asked_for(self, faulty):
        lot, shipping = a_lot(faulty)
        batch = shipping.batch(lot)

        answer = summarise_batch(Batch(batch.reading, batch.steps, {}))

        assert (answer.lacks, answer.steps) == ((0,), [])

    def test_a_plan_is_sent_until_a_worker_has_it(self, faulty):
        lot, shipping = a_lot(faulty)
        first = shipping.batch(lot)
        again = shipping.batch(lot)
        shipping.summaries(lot, summarise_batch(first))

        assert [list(batch.plans) for batch in (first, again, shipping.batch(lot))] == [[0], [0], []]
        assert list(shipping.batch(lot, with_plans=True).plans) == [0]

    def test_what_comes_back_is_small_and_has_no_plan(self, faulty):
        lot, shipping = a_lot(faulty)

        answer = summarise_batch(shipping.batch(lot))

        assert len(Workers.dumps(answer)) < 2000
        assert isinstance(answer, Answer)
        assert b"FilePlan" not in Workers.dumps(answer)

    def test_another_version_of_the_program_is_refused(self, faulty):
        lot, shipping = a_lot(faulty, version="0.0.1")

        with pytest.raises(RuntimeError, match=r"the worker has rule-evaluator .*, the job 0\.0\.1"):
            summarise_batch(shipping.batch(lot))

    def test_steps_go_together_until_they_are_worth_a_task(self, faulty):
        lot, _ = a_lot(faulty)
        together = Lot()
        while not together.full:
            together.add(lot)

        assert len(together.steps) == 64
        assert not together.takes(Lot([], COMPARED))


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({"engine": "dask"}, "command line: engine: dask needs a scheduler; add scheduler=tcp://HOST:PORT"),
            (
                {"scheduler": "tcp://a:1"},
                "command line: scheduler: has no meaning with the engine local; add engine=dask",
            ),
            ({"engine": "daks", "scheduler": "tcp://a:1"}, "command line: engine: 'daks' does not fit; expected"),
            ({"engine": "dask", "scheduler": "a:1"}, "command line: scheduler: 'a:1' does not fit; expected"),
        ],
    )
    def test_what_does_not_go_together_is_one_mistake(self, given, told):
        (mistake,) = resolve_settings(given, {}, {}, {})[2]

        assert str(mistake).startswith(told)

    @pytest.mark.parametrize("scheduler", ["tcp://10.0.0.1:8786", "tls://algo-1:1"])
    def test_engine_and_scheduler_go_together(self, scheduler):
        settings, _, mistakes = resolve_settings({"engine": "dask", "scheduler": scheduler}, {}, {}, {})

        assert (settings.scheduler, mistakes) == (scheduler, [])


def test_without_the_extra_one_line_says_what_to_install(faulty, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)

    ran = call(
        capsys, "run", faulty, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--output", tmp_path / "out"
    )

    told = "engine: dask needs a package that is not installed (distributed); pip install 'rule-evaluator[dask]'"
    assert (ran.code, ran.lines) == (2, [told])


def test_the_options_of_run_are_the_settings(faulty, tmp_path, two, capsys):
    output = tmp_path / "out"

    ran = call(
        capsys, "run", faulty, "--engine", "dask", "--scheduler", two.scheduler_address, "--output", output,
        "--rule", "VanishingGradient", "--json",
    )  # fmt: skip

    assert ran.code == 1
    assert ran.document["job"]["settings"]["engine"] == "dask"


def test_a_scheduler_that_is_not_there_is_wrong_input(faulty, tmp_path, monkeypatch):
    monkeypatch.setattr("evaluator.engine.distributed.connection.CONNECT_TIMEOUT", 0.5)

    with pytest.raises(InputError, match=r"scheduler: no Dask scheduler answers at 'tcp://127\.0\.0\.1:1' within"):
        run(faulty, tmp_path / "out", "tcp://127.0.0.1:1")

    assert not (tmp_path / "out").exists()


def test_a_job_that_does_not_use_it_does_not_import_it(faulty, tmp_path):
    assert load(Arguments(trial=str(faulty)), {}).settings.engine == "local"


ABS_MEAN = named("abs_mean")


class Plans:
    """One plan for each layout: a measure of everything."""

    def __init__(self, measure: Measure = ABS_MEAN) -> None:
        self._measure = measure
        self._plans: dict[int, FilePlan] = {}

    def of(self, file: StepFile) -> FilePlan:
        group = Group(np.arange(len(file.layout.names)), (self._measure,), keep=False)
        return self._plans.setdefault(id(file.layout), FilePlan(file.layout, [group], np.empty(0, np.int64), [], []))


def a_lot(trial: Path, **given: str) -> tuple[Lot, Shipping]:
    """One step, and what sends it."""
    source = open_run(str(trial))
    (file,) = source.open(source.sightings()[0])
    reading = Reading(secrets.token_hex(4), open_store(str(trial)).uri, source.name, BUDGET, **given)
    return lot_of(source, StepSummary(Step(0, [file]), [FileSummary(file, Plans().of(file))])), Shipping(
        reading, Workers.dumps
    )
