"""Makes a page about a run of XGBoost, `xgboost_report.html`; it reports no issue.

The page is made at the end, and at most every five minutes before, of what was saved last: the labels, the metrics over
the steps, the importance of the features; for classes the confusion matrix, what it comes to, and its diagonal over the
steps; for two classes the ROC curve; the residuals; for numbers the error by label over the steps. What a section would
show and was not saved, it names. Needs the extra `report`: pip install 'rule-evaluator[report]'.

Quiet when: always.
Source: SageMaker Debugger's list of built-in rules, "CreateXgboostReport". It lists the sections and not how they are
made. Our choices: how predictions are set against labels (`aligned`), which class they stand for (`predicted_classes`),
how the kind of problem is told where no objective was saved (`problem_of`). There is no notebook beside the page and no
date on it: the same run gives the same page. Tensors are found by the names that XGBoost's own hook gives them, because
collections called labels or predictions are also made by runs that are no XGBoost.
"""

from builtin_rules.trees._report.facts import IMPORTANCE, LABELS_TENSOR, OBJECTIVE, PREDICTIONS_TENSOR, facts_of
from builtin_rules.trees._report.history import HISTORY
from builtin_rules.trees._report.measures import OF_LABELS, OF_PAIRS, OF_TEXT, SIZE
from builtin_rules.trees._report.quiet import quiet
from evaluator.rule import (
    Beside,
    Example,
    NotYet,
    Report,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Window,
)

LABELS = Selection(names=(LABELS_TENSOR,))
PREDICTIONS = Selection(names=(PREDICTIONS_TENSOR,))
FEATURES = f"^{IMPORTANCE}(weight|gain|cover)/"
METRICS = "^(train|validation|eval|test)-"
MOST_STEPS = 5000
"""Of the metrics the page shows as many of the last saved steps as this; a run with more rounds is rare."""
EXTRA = ("matplotlib", "jinja2")


class Parameters(RuleParameters):
    """CreateXgboostReport has no parameters of its own."""


def needs(_: Parameters) -> list[Summary]:
    """What there is of a run of XGBoost; any of it makes a page."""
    anything = Selection(names=(LABELS_TENSOR, PREDICTIONS_TENSOR), regexes=(FEATURES, METRICS))
    metrics = Selection(collections=("metrics",), regexes=(METRICS,))
    return [
        Summary(anything, by=SIZE),
        Summary(LABELS, by=OF_LABELS, triggers=False),
        Summary(LABELS, by=OF_PAIRS, partner=Beside(PREDICTIONS), state=HISTORY, triggers=False),
        Summary(metrics, by="mean", rows=MOST_STEPS, triggers=False),
        Summary(Selection(regexes=(FEATURES,)), by="mean", triggers=False),
        Summary(Selection(names=(OBJECTIVE,)), by=OF_TEXT, triggers=False),
    ]


def report(
    anything: Window,
    labels: Window,
    pairs: State,
    metrics: Window,
    importance: Window,
    objective: Window,
    _: Parameters,
) -> str | NotYet:
    """The page; the packages that make it are imported only here, because many jobs never come here."""
    try:
        with quiet():
            from builtin_rules.trees._report.page import page  # noqa: PLC0415 - optional packages, imported when needed
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        return NotYet(
            f"the package {package} is not installed; install the extra: pip install 'rule-evaluator[report]'"
        )
    except OSError:
        # matplotlib keeps a list of fonts in a folder, and needs one even when it is to be forgotten
        return NotYet("matplotlib finds no folder that it can write; let MPLCONFIGDIR name one")
    return page(facts_of(anything, labels, pairs, metrics, importance, objective))


RULE = Rule(
    name="CreateXgboostReport",
    severity="info",
    parameters=Parameters,
    requires=needs,
    report=Report("xgboost_report.html", report),
    examples=(
        Example(
            "two classes",
            {
                "labels": [[0.0, 1.0, 1.0]] * 2,
                "predictions": [[0.4, 0.6, 0.4], [0.1, 0.9, 0.8]],
                "train-logloss": [0.6, 0.2],
                "validation-logloss": [0.6, 0.3],
                "feature_importance/gain/age": [0.7, 0.8],
                "feature_importance/gain/income": [0.3, 0.2],
            },
        ),
        Example("only labels", {"labels": [[1.5, 2.5]]}),
        Example("more predictions than labels", {"labels": [[0.0, 1.0]], "predictions": [[0.5, 0.5, 0.5]]}),
    ),
)
