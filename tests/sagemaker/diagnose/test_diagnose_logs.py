"""Logs are read line by line: ranks, steps, times and errors, whatever else stands in them."""

from __future__ import annotations

import json
import tracemalloc
from io import BytesIO
from pathlib import Path
from time import process_time

import pytest

from evaluator.errors import InputError
from evaluator.sagemaker.diagnose import Found, Inputs, NotChecked, Ok, checks, deprecated_data_parallel
from evaluator.sagemaker.diagnose import stall_at_end as stall
from evaluator.sagemaker.diagnose._lines import LONGEST, lines_of
from evaluator.sagemaker.diagnose._log import LogFacts, LogReader
from evaluator.sagemaker.diagnose._walking import signs
from tests.sagemaker.diagnose.examples import gather, of

CHECKS = {check.name: check for check in checks()}


def read(text: str | bytes, source: str = "log") -> LogFacts:
    reader = LogReader(signs())
    reader.read(lines_of(BytesIO(text if isinstance(text, bytes) else text.encode())), source)
    return reader.close()


def log(tmp_path: Path, text: str, name: str = "train.log") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("rank 3 step 1", "rank 3"),
        ("[rank3]: Traceback", "rank 3"),
        ("[Rank 3] Watchdog", "rank 3"),
        ("rank=3 loss=1", "rank 3"),
        ('{"rank": 3, "step": 1}', "rank 3"),
        ("global_rank: 3", "rank 3"),
        ("[1,3]<stdout>: step 1", "rank 3"),
        ("[1,mpirank:3,algo-1]<stderr>: step 1", "rank 3"),
        ("local_rank 3 step 1", None),
        ("frank 3", None),
        ("LoRA rank 16", None),
        ("low-rank 16", None),
        ("rank 0.5 of a matrix", None),
        ("ranks 3", None),
        ("step 3", None),
    ],
)
def test_the_rank_of_a_line(line: str, rank: str | None):
    assert list(read(line).speakers) == ([] if rank is None else [rank])


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("rank 0 step 12", (0, 12)),
        ("rank 0 Step: 12, loss 0.5", (0, 12)),
        ('{"rank": 0, "global_step": 12}', (0, 12)),
        ("rank 0 epoch 2 batch 12/100", (2, 12)),
        ("rank 0 Epoch [2] iteration [12]", (2, 12)),
        ("rank 0 step 12 batch 3", (0, 12)),
        ("rank 0 time per step: 0.3", None),
        ("rank 0 step 12 ms", None),
        ("rank 0 batch_size=12", None),
        ("rank 0 total steps: 12", None),
        ("rank 0 max_step=12", None),
    ],
)
def test_the_step_of_a_line(line: str, place: tuple[int, int] | None):
    assert read(line).ranks.place_of("rank 0") == place


def test_steps_that_begin_anew_are_another_epoch():
    facts = read("rank 0 batch 1\nrank 0 batch 2\nrank 0 batch 1\n")

    assert facts.ranks.place_of("rank 0") == (1, 1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loss=nan", True),
        ("train_loss: NaN", True),
        ('{"rank": 0, "loss": NaN}', True),
        ("Loss is nan, stopping training", True),
        ("grad_norm=inf", True),
        ("loss -inf", True),
        ("loss=1.5 eta=nan", False),
        ("INFO loss=1.5", False),
        ("loss function information", False),
        ("nan in the data", False),
        ("loss of finance: 3", False),
    ],
)
def test_a_loss_that_is_no_number(line: str, expected: bool):
    assert ("loss is not finite" in read(line).hits) is expected


def test_an_evaluation_on_one_rank_does_not_make_an_epoch_uneven(tmp_path: Path):
    text = "".join(
        f"rank {rank} epoch {epoch} step {step}\n" for epoch in (0, 1) for step in range(5) for rank in (0, 1)
    )
    evaluates = text + "rank 0 epoch 1 val step 1\nrank 0 val step 0\n"

    assert isinstance(of(CHECKS["StallAtEnd"], Inputs(logs=[log(tmp_path, evaluates)])), Ok)


def test_steps_that_begin_anew_for_some_ranks_only_show_nothing(tmp_path: Path):
    text = "rank 0 step 5\nrank 1 step 5\nrank 0 step 0\nrank 0 step 9\nrank 1 step 6\n"
    result = of(CHECKS["StallAtEnd"], Inputs(logs=[log(tmp_path, text)]))

    assert isinstance(result, NotChecked)
    assert "no line names an epoch" in result.why


@pytest.mark.parametrize(
    "line",
    [
        "rank" + " " * 16_000 + "x",
        "rank " * 3_000,
        "step" + "_" * 16_000,
        '"message": ' + " " * 16_000 + "x",
        "no such file .tmp worker_" + "1" * 16_000,
        "exitcode -9" + "exitcode" + " " * 16_000,
        "loss" * 4_000 + "=nan",
        " nan" * 4_000 + "loss",
        "loss " + " " * 16_000 + " nan",
        "nccl timeout" * 1000,
        "2026-01-01T" * 1500,
    ],
)
def test_no_line_takes_long(line: str):
    """Each of them, a hundred times, in the time that a search without an end takes for one."""
    before = process_time()
    read(f"{line}\n" * 100)

    assert process_time() - before < 5


def test_times_are_read_with_and_without_a_zone():
    assert read("2026-01-01 10:00:00,123 x\n2026-01-01 10:01:00 step 1\nno time").newest == 1767261660.0
    assert not read("2026-01-01 10:00:00 x").zoned
    assert read("[2026-01-01T11:00:00+01:00] x").began == 1767261600.0
    assert read("[2026-01-01T11:00:00+01:00] x").zoned


@pytest.mark.parametrize("line", ["9999-99-99T99:99:99 x", "0000-01-01T00:00:00Z x", "a-b", "-"])
def test_what_only_looks_like_a_time_is_none(line: str):
    assert read(line).began is None


def test_the_end_of_a_script_is_seen():
    assert read("2026 sagemaker-training-toolkit INFO Reporting training SUCCESS").succeeded
    assert read("Reporting training FAILURE").failed
    assert not read("Reporting").over


def test_a_log_of_bytes_that_are_no_text_is_read():
    facts = read(b"\xff\xfe\x00rank 1 step 5\n\x80\x81CUDA out of memory\x1b[2J\n")

    assert facts.ranks.place_of("rank 1") == (0, 5)
    (line,) = facts.hits["out of memory on a device"].first
    assert "\x1b" not in line.text
    assert "\\x1b[2J" in line.text


def test_a_line_without_an_end_takes_no_memory_and_what_stands_in_it_is_found(tmp_path: Path):
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        for _ in range(400):
            file.write(b"x" * LONGEST * 8)
        file.write(b"\rrank 1: CUDA out of memory")
    tracemalloc.start()
    facts = gather(Inputs(logs=[str(path)])).log
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert facts is not None
    assert list(facts.hits["out of memory on a device"].speakers) == ["rank 1"]
    assert peak < 8 * 2**20


def test_memory_does_not_grow_with_ranks_and_lines_that_a_log_makes_up():
    lines = ((at, f"rank {at} step {at} loss=nan CUDA out of memory", None) for at in range(30_000))
    reader = LogReader(signs())
    reader.read(lines, "log")
    facts = reader.close()

    assert len(facts.speakers) == len(facts.ranks.walks) == 20_000
    assert len(facts.hits["out of memory on a device"].speakers) == 20_000
    assert facts.hits["out of memory on a device"].count == 30_000
    assert len(facts.hits["out of memory on a device"].first) == 5


def test_a_line_of_any_length_is_shown_in_one_short_line():
    (line,) = read(f"CUDA out of memory {'x' * 10_000}").hits["out of memory on a device"].first

    assert len(line.text) < 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank 0 step 7 loss=1\nrank 1 step 7 loss=nan\n", Found),
        ("rank 0 step 7 loss=1\nrank 1 step 7 loss=nan\nReporting training SUCCESS\n", Ok),
        ("rank 0 step 7 loss=nan\nrank 1 step 7 loss=nan\n", Ok),
        ("rank 0 loss=1\nrank 1 loss=nan\n", NotChecked),
    ],
)
def test_nan_on_one_rank_counts_where_silence_follows(tmp_path: Path, text: str, expected: type):
    assert isinstance(of(CHECKS["RankNotFinite"], Inputs(logs=[log(tmp_path, text)])), expected)


def test_progress_bars_are_read_one_by_one():
    facts = read("rank 0 step 1\rrank 0 step 2\rrank 0 step 3\nnext: CUDA out of memory\n")

    assert facts.ranks.place_of("rank 0") == (0, 3)
    assert facts.hits["out of memory on a device"].first[0].where == "log:2"


def test_what_cloudwatch_answers_is_a_log_with_times():
    events = [
        {"logStreamName": "job/algo-1", "timestamp": 1767261600000, "message": 'start\tat "once"\n', "eventId": "1"},
        {"logStreamName": "job/algo-1", "timestamp": 1767265200000, "message": "rank 0 step 1", "eventId": "2"},
    ]
    facts = read(json.dumps({"events": events, "searchedLogStreams": []}, indent=4))

    assert (facts.began, facts.first_step, facts.zoned) == (1767261600.0, 1767265200.0, True)
    assert facts.ranks.place_of("rank 0") == (0, 1)


def test_lines_of_json_are_lines():
    facts = read('{"rank": 0, "step": 1, "message": "CUDA out of memory"}\n')

    assert facts.hits["out of memory on a device"].count == 1


def test_uneven_ranks_are_named_with_their_difference(tmp_path: Path):
    lines = "".join(f"rank {rank} step {step}\n" for step in range(10) for rank in (0, 1, 2) if step < 8 or rank != 1)
    result = of(CHECKS["StallAtEnd"], Inputs(logs=[log(tmp_path, lines)]))

    assert isinstance(result, Found)
    assert result.what == "ranks ended before the others: rank 1 by 2 steps"
    assert "rank 1: last step 7" in result.evidence


def test_logs_of_hosts_are_compared_where_no_line_names_a_rank(tmp_path: Path):
    logs = [
        log(tmp_path, "".join(f"step {step}\n" for step in range(count)), name)
        for name, count in (("algo-1.log", 10), ("algo-2.log", 4))
    ]
    result = of(CHECKS["StallAtEnd"], Inputs(logs=logs))

    assert isinstance(result, Found)
    assert f"{logs[1]} by 6 steps" in result.what


def test_one_step_apart_is_found_once_the_job_is_known_to_be_over(tmp_path: Path):
    path = log(tmp_path, "rank 0 step 0\nrank 1 step 0\nrank 0 step 1\nrank 1 step 1\nrank 0 step 2\n")
    description = log(tmp_path, '{"TrainingJobName": "job", "TrainingJobStatus": "Stopped"}', "job.json")

    assert isinstance(of(CHECKS["StallAtEnd"], Inputs(logs=[path])), NotChecked)
    assert isinstance(of(CHECKS["StallAtEnd"], Inputs(logs=[path], request=description)), Found)


def test_a_rank_that_is_an_epoch_behind_is_named(tmp_path: Path):
    path = log(tmp_path, "rank 0 epoch 0 step 5\nrank 1 epoch 0 step 5\nrank 0 epoch 1 step 0\n")
    result = of(stall.CHECK, Inputs(logs=[path]))

    assert isinstance(result, Found)
    assert "rank 1 by an epoch" in result.what


def test_a_time_out_points_at_the_rank_that_had_none(tmp_path: Path):
    text = "[rank2]: step 41\n" + "".join(
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(...)\n" for rank in (0, 1, 3)
    )
    result = of(CHECKS["CollectiveTimeout"], Inputs(logs=[log(tmp_path, text)]))

    assert isinstance(result, Found)
    assert result.what == "a collective timed out on rank 0, rank 1, rank 3"
    assert result.remedy == ("Begin with rank 2: the log has no time-out of it.",)


def test_memory_that_one_rank_lacks_is_told_apart_from_that_of_all(tmp_path: Path):
    one = log(tmp_path, "rank 0 step 1\nrank 1: CUDA out of memory\n", "one.log")
    both = log(tmp_path, "rank 0: CUDA out of memory\nrank 1: CUDA out of memory\n", "both.log")

    alone, everywhere = (of(CHECKS["OutOfMemory"], Inputs(logs=[path])) for path in (one, both))

    assert isinstance(alone, Found)
    assert alone.what == "rank 1 is out of memory, 1 other is not"
    assert len(alone.remedy) == 1
    assert isinstance(everywhere, Found)
    assert everywhere.remedy == ()


def test_the_replacement_is_that_of_the_calls_that_the_log_shows(tmp_path: Path):
    text = (
        "train.py:3: UserWarning: smdistributed.dataparallel.torch.dist is deprecated in ... v1.4.0+.\n"
        "  rank = dist.get_local_rank()\n"
    )
    result = of(deprecated_data_parallel.CHECK, Inputs(logs=[log(tmp_path, text)]))

    assert isinstance(result, Found)
    assert result.remedy == ("`dist.get_local_rank()` becomes `int(os.environ['LOCAL_RANK'])`",)


def test_a_job_and_a_log_in_another_zone_are_not_compared(tmp_path: Path):
    """The job began at 10:00 UTC; the log's clock has no zone and is two hours ahead."""
    job = '{"TrainingJobName": "job", "TrainingJobStatus": "Completed", "TrainingStartTime": 1767261600}'
    inputs = Inputs(
        request=log(tmp_path, job, "job.json"),
        logs=[log(tmp_path, "2026-01-01 12:00:30 start\n2026-01-01 12:01:00 step 0\n")],
    )
    result = of(CHECKS["NoFirstStep"], inputs)

    assert isinstance(result, Ok)
    assert "30 s after the log's first line" in result.what


def test_the_limit_can_be_moved(tmp_path: Path):
    path = log(tmp_path, "2026-01-01 12:00:00 start\n2026-01-01 12:01:00 step 0\n")

    assert isinstance(of(CHECKS["NoFirstStep"], Inputs(logs=[path], start_limit=59)), Found)
    assert isinstance(of(CHECKS["NoFirstStep"], Inputs(logs=[path], start_limit=60)), Ok)


def test_a_log_that_is_not_there_is_wrong_input(tmp_path: Path):
    with pytest.raises(InputError, match="there is no such file"):
        gather(Inputs(logs=[str(tmp_path / "none.log")]))


def test_an_empty_log_is_no_finding(tmp_path: Path):
    evidence = gather(Inputs(logs=[log(tmp_path, "")]))

    assert [check.name for check in checks() if isinstance(check.check(evidence), Found)] == []
