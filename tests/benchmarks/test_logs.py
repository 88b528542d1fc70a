"""The benchmark over public logs: what names are, how logs are read, and what is counted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.evaluate import candidates, judge
from benchmarks.incidents import Share, by_group, upper_bound
from benchmarks.logs.__main__ import main
from benchmarks.logs.load import Label, NoLogs, as_run, labels, load_log, points
from benchmarks.logs.page import by_rule, details, markdown, put, show, summary
from benchmarks.logs.run import judge_log
from benchmarks.logs.score import FITTING, Found, JudgedLog, false_alarms, misses, recall, unclear
from builtin_rules.losses._names import kind_of
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.scalar_names import collections_of
from evaluator.sources.series import Point

# names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("loss", "losses"),
        ("train/box_loss", "losses"),
        ("ValLoss", "losses"),
        ("Validation Loss", "losses"),
        ("train_loss_epoch", "losses"),
        ("loss_bbox", "losses"),
        ("ce_reward_loss", "losses"),
        ("learn_Logloss", "losses"),
        ("test_CrossEntropy", "losses"),
        ("nll", "losses"),
        ("eval_accuracy", "rising_metrics"),
        ("Training Accuracy", "rising_metrics"),
        ("test_acc5", "rising_metrics"),
        ("metrics/mAP50-95(B)", "rising_metrics"),
        ("eval_hits@10", "rising_metrics"),
        ("eval_rouge-1", "rising_metrics"),
        ("eval_f1_score", "rising_metrics"),
        ("rollout/ep_rew_mean", "rising_metrics"),
        ("r2", "rising_metrics"),
        ("top1", "rising_metrics"),
        ("test/wer", "falling_metrics"),
        ("learn_RMSE", "falling_metrics"),
        ("val_perplexity", "falling_metrics"),
        ("grad_norm", "gradient_norms"),
        ("gradient/norm", "gradient_norms"),
        ("learning_rate", "learning_rates"),
        ("Learning Rate", "learning_rates"),
        ("lr/pg0", "learning_rates"),
        ("lr-AdamW", "learning_rates"),
        ("loss_lr", "learning_rates"),
        ("reward_std", None),
        ("reward_rate", None),
        ("rewards/rejected", None),
        ("rewards/chosen", None),
        ("completion_length", None),
        ("temperature", None),
        ("glossary", None),
        ("", None),
    ],
)
def test_a_name_tells_what_it_is(name: str, kind: str | None):
    assert kind_of(name) == kind


def test_metrics_are_the_rising_and_the_falling_ones_in_their_order():
    assert collections_of(["wer", "loss", "accuracy", "epoch", "wer"]) == {
        "falling_metrics": ["wer"],
        "metrics": ["wer", "accuracy"],
        "losses": ["loss"],
        "rising_metrics": ["accuracy"],
    }


def test_errors_are_losses_only_where_nothing_is_called_a_loss():
    without, beside = collections_of(["learn_RMSE", "test_wer"]), collections_of(["learn_RMSE", "loss"])

    assert (without["losses"], beside["losses"]) == (["learn_RMSE"], ["loss"])


# reading


def line(step: int, name: str, value: float | str, mode: str = "TRAIN") -> str:
    return json.dumps({"step": step, "name": name, "value": value, "mode": mode})


def falling(steps: int) -> list[str]:
    return [line(step, "loss", 1.0 / (1 + step)) for step in range(steps)]


def write(folder: Path, logs: dict[str, tuple[str, list[str]]]) -> Path:
    """A folder of logs: run -> label and lines."""
    known = {
        run: {"repository": "r1", "kind": "made up", "label": label, "why": "so made", "onset_step": None}
        for run, (label, _) in logs.items()
    }
    (folder / "labels.json").write_text(json.dumps(known))
    for run, (_, lines) in logs.items():
        (folder / f"{run}.jsonl").write_text("".join(f"{one}\n" for one in lines))
    return folder


def test_numbers_that_json_lacks_are_read():
    lines = [line(0, "a", text) for text in ("NaN", "Infinity", "-Infinity")] + [line(0, "a", 2)]
    values = [point.value for point in points(lines)]

    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 2.0]


def test_another_text_is_no_number():
    with pytest.raises(KeyError):
        list(points([line(0, "a", "many")]))


def test_a_log_becomes_a_run_with_modes_and_collections(tmp_path: Path):
    lines = [line(0, "loss", 1.0), line(0, "eval_loss", 2.0, "EVAL"), line(0, "eval_f1", 0.5, "EVAL")]
    write(tmp_path, {"a": ("healthy", lines)})
    source = load_log(tmp_path / "a.jsonl")
    (sighting,) = source.sightings()
    collections = source.collections()

    assert [(file.mode, file.layout.names) for file in source.open(sighting)] == [
        (Mode.TRAIN, ("loss",)),
        (Mode.EVAL, ("eval_loss", "eval_f1")),
    ]
    assert collections is not None
    assert collections.by_name["losses"].tensor_names == ("loss", "eval_loss")


def test_labels_without_their_folder_are_missed_by_name(tmp_path: Path):
    with pytest.raises(NoLogs, match=r"has no labels\.json; give the folder of labelled logs with --logs DIR"):
        labels(tmp_path)


def test_a_log_that_is_labelled_and_not_there_is_named(tmp_path: Path):
    write(tmp_path, {"a": ("healthy", []), "b": ("healthy", [])})
    (tmp_path / "b.jsonl").unlink()

    with pytest.raises(NoLogs, match=r"1 logs named in labels\.json are missing, the first is b\.jsonl"):
        labels(tmp_path)


# shares


@pytest.mark.parametrize(
    ("hits", "of", "bound"), [(0, 300, 0.00994), (0, 1, 0.95), (2, 125, 0.0496), (5, 5, 1.0), (0, 0, 1.0)]
)
def test_the_bound_is_that_of_clopper_and_pearson(hits: int, of: int, bound: float):
    assert upper_bound(hits, of) == pytest.approx(bound, abs=2e-4)


def test_every_group_weighs_the_same():
    assert by_group([("a", True), ("a", True), ("a", True), ("b", False), ("b", True)]) == 0.75


def test_a_share_of_nothing_is_not_a_number():
    assert (str(Share(0, 0)), str(Share(1, 3)), math.isnan(by_group([]))) == ("0 of 0 (-)", "1 of 3 (33.3 %)", True)


# scores


def judged(run: str, label: str, *rules: str, repository: str = "r1", step: int = 7) -> JudgedLog:
    """A log on which these rules have a finding."""
    found = [Found(rule, step, "loss", "1.5", "") for rule in rules]
    return JudgedLog(Label(run, repository, "", label, "so made", 3), found, frozenset({*rules, "Overfit"}))


LOGS = [
    judged("h1", "healthy"),
    judged("h2", "healthy", "Overfit", "LossSpike"),
    judged("h3", "healthy", repository="r2"),
    judged("d1", "diverging", "LossSpike"),
    judged("d2", "diverging", "Overfit", repository="r3"),
    judged("n1", "nonfinite", "NonFinite"),
    judged("u1", "unclear", "LossSpike"),
    judged("u2", "unclear"),
]


def test_any_finding_on_a_healthy_log_is_one_false_alarm():
    score = false_alarms(LOGS)

    assert (score.runs, score.repositories) == (Share(1, 3), 0.25)


def test_a_problem_is_found_by_a_fitting_rule_only():
    score = recall(LOGS, "diverging")

    assert (score.runs, score.repositories, [log.label.run for log in misses(LOGS)]) == (Share(1, 2), 0.5, ["d2"])


def test_all_problems_together():
    assert recall(LOGS, *FITTING).runs == Share(2, 3)


def test_unclear_logs_are_listed_and_not_scored():
    assert ([log.label.run for log in unclear(LOGS)], recall(LOGS, "unclear").runs.hits) == (["u1"], 0)


def test_every_label_of_a_problem_has_fitting_rules():
    assert all(FITTING.values())


def test_the_table_stands_both_sets_side_by_side():
    head, rows = summary({"recommended": LOGS, "sagemaker": LOGS[:3]})

    assert head == [
        "",
        "runs",
        "recommended: by run",
        "recommended: by repository",
        "sagemaker: by run",
        "sagemaker: by repository",
    ]
    assert rows[0][:4] == ["healthy, with a finding", "3", "1 of 3 (33.3 %), below 86.5 %", "25.0 %"]
    assert {len(row) for row in rows} == {len(head)}


def test_the_tables_below_name_rule_tensor_step_and_what_was_measured():
    alarms, missed, doubtful = (rows for _, _, rows in details(LOGS))

    assert alarms == [["h2", "r1", rule, "loss", "7", "1.5"] for rule in ("Overfit", "LossSpike")]
    assert missed == [["d2", "r3", "diverging", "Overfit at 7", "so made"]]
    assert doubtful == [["u1", "r1", "LossSpike at 7", "so made"]]


def test_each_rule_is_counted():
    assert by_rule(LOGS)[1] == [["LossSpike", "3", "1", "1"], ["NonFinite", "1", "0", "1"], ["Overfit", "8", "1", "0"]]


def test_names_from_logs_are_no_markup(capsys: pytest.CaptureFixture[str]):
    log = JudgedLog(Label("h", "r", "", "healthy", ""), [Found("Overfit", 1, "[red]x[/]\x1b[2J", "1", "")])
    show({"recommended": [log]}, Console(width=200))

    assert r"[red]x[/]\x1b[2J" in capsys.readouterr().out


# the page


def test_a_page_is_made_with_the_marks_of_both_benchmarks(tmp_path: Path):
    page = tmp_path / "detection.md"
    put(page, "table")
    text = page.read_text()

    assert "<!-- logs -->\ntable\n<!-- /logs -->" in text
    assert "<!-- zoo -->\n<!-- /zoo -->" in text


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path):
    page = tmp_path / "detection.md"
    page.write_text("# Title\n<!-- logs -->\nold\n<!-- /logs -->\nrest\n")
    put(page, markdown({"recommended": LOGS}))
    put(page, "new")

    assert page.read_text() == "# Title\n<!-- logs -->\nnew\n<!-- /logs -->\nrest\n"


def test_a_page_without_marks_is_left_alone(tmp_path: Path):
    page = tmp_path / "detection.md"
    page.write_text("# Title\n")

    with pytest.raises(ValueError, match="add them where the table should stand"):
        put(page, "new")


# the command


def test_a_log_is_judged_by_the_builtin_rules(tmp_path: Path):
    exploding = [line(step, "loss", "Infinity" if step > 5 else 1.0) for step in range(10)]
    known = labels(write(tmp_path, {"a": ("nonfinite", exploding)}))
    log = judge_log((tmp_path, known["a"], "sagemaker"))

    assert log.raised == {}
    assert log.evaluated <= set(builtin_rules())
    assert [one.step for one in log.found if one.rule == "ExplodingTensor"] == [6]


@pytest.mark.parametrize("validation", ["val_loss", "loss"])
def test_training_and_validation_at_one_step_are_compared(validation: str):
    overfit = [made for made in candidates("sagemaker") if made.name == "Overfit"]
    source = as_run([Point(4, "loss", 1.0, Mode.TRAIN), Point(4, validation, 1.5, Mode.EVAL)])

    assert [(one.step, one.mode, one.tensor) for one in judge(source, overfit).findings] == [(4, "EVAL", validation)]


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write(tmp_path, {"a": ("healthy", falling(8)), "b": ("nonfinite", [*falling(5), line(5, "loss", "NaN")])})
    page = tmp_path / "page.md"
    code = main(["--logs", str(tmp_path), "--write", str(page), "--processes", "1"])

    assert code == 0
    assert "nonfinite, found" in capsys.readouterr().out
    assert "| nonfinite, found | 1 |" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--logs", "nowhere"], "nowhere: has no labels.json"),
        (["--run", "zzz"], "--run: zzz: no such log in"),
        (["--run", "a", "--write", "page.md"], "--write: the page holds both sets over all logs"),
        (["--set", "sagemaker", "--write", "page.md"], "--write: the page holds both sets over all logs"),
    ],
)
def test_a_wrong_request_ends_with_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = [] if "--logs" in arguments else ["--logs", str(write(tmp_path, {"a": ("healthy", falling(2))}))]

    assert main([*folder, *arguments]) == 2
    assert message in capsys.readouterr().err
