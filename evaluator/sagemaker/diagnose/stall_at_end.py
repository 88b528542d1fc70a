"""Workers were given different numbers of batches, so that some wait for others that are through.

In the trial it is the rule UnevenSteps that decides. In logs, the last step of each rank counts (or of each log, where
no line names a rank): in an epoch that all have left, any difference of at least the distance between two lines; at the
end, such a difference only where the end is known (by the job, by the log, by a time-out of a collective), since a line
may be on its way; more than twice as much in any case.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on stalls at the end.
"""

from __future__ import annotations

from builtin_rules.workers.uneven_steps import Parameters, ended_early
from evaluator.sagemaker.diagnose import collective_timeout
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, gravest
from evaluator.sagemaker.diagnose._evidence import Evidence, listed
from evaluator.sagemaker.diagnose._log import LogFacts
from evaluator.sagemaker.diagnose._progress import Progress
from evaluator.sagemaker.diagnose._trial import TrialFacts
from evaluator.window import Met


def check(evidence: Evidence) -> Result:
    """What trial and logs say; what is found in either counts."""
    results: list[Result] = []
    if evidence.trial is not None:
        results.append(_of_trial(evidence.trial))
    if evidence.log is not None:
        over = evidence.log.over or bool(evidence.job and evidence.job.over)
        results.append(_of_log(evidence.log, over=over or bool(evidence.hits(collective_timeout.SIGN).count)))
    why = "needs a trial, or a log whose lines name rank and step"
    return gravest(results) or NotChecked(evidence.lacks(why, "trial", "log"))


def _of_trial(trial: TrialFacts) -> Result:
    if len(trial.workers) < 2:
        return NotChecked(f"{len(trial.workers)} worker saved, in {trial.path}")
    verdict = ended_early(trial.progress, Parameters(steps=1))
    if not isinstance(verdict, Met):
        return Ok(f"{len(trial.workers)} workers ended together, at step {max(trial.last_step.values())}")
    counts = dict(zip(trial.workers, trial.progress.steps.tolist(), strict=True))
    early = {trial.workers[at]: int(by) for at, by in zip(verdict.columns.tolist(), verdict.measured, strict=True)}
    named = listed(f"{worker} by {_steps(by)}" for worker, by in early.items())
    lines = [f"{worker}: {counts[worker]} saved steps, the last one {trial.last_step[worker]}" for worker in early]
    rest = [worker for worker in trial.workers if worker not in early]
    lines += [f"{worker}: {counts[worker]} saved steps, the last one {trial.last_step[worker]}" for worker in rest[:3]]
    return Found(f"workers ended before the others, in saved steps: {named}", _short(lines))


def _of_log(log: LogFacts, *, over: bool) -> Result:
    progress = log.ranks if len(log.ranks.walks) > 1 else log.hosts
    if len(progress.walks) < 2:
        return NotChecked("no two ranks name their steps in the log")
    if progress.unclear:
        return NotChecked("steps begin anew more often for some ranks than for others, and no line names an epoch")
    uneven = progress.uneven_epoch()
    if uneven is not None:
        epoch, ends = uneven
        most = max(ends.values())
        early = {name: most - last for name, last in ends.items() if last < most}
        named = listed(f"{name} by {_steps(by)}" for name, by in early.items())
        lines = [f"{name}: last step {last} in epoch {epoch}" for name, last in ends.items()]
        return Found(f"epoch {epoch} was shorter for some ranks: {named}", _short(lines))
    behind = progress.behind()
    lines = [f"{name}: last step {progress.walks[name].place[1]}{_epoch(progress, name)}" for name in progress.names]
    if not behind:
        return Ok(f"{len(lines)} ranks ended together in the log")
    far = {name for name, by in behind.items() if by == 0 or by >= 2 * progress.walks[name].gap}
    if over or far:
        named = listed(f"{name} by {_steps(by)}" if by else f"{name} by an epoch" for name, by in behind.items())
        return Found(f"ranks ended before the others: {named}", _short(lines))
    why = f"{listed(behind)} may only have a line on its way: whether the training has ended, is not known"
    return NotChecked(f"{why}; --training-job or --request tells")


def _epoch(progress: Progress, name: str) -> str:
    epoch = progress.walks[name].place[0]
    return f" of epoch {epoch}" if epoch else ""


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"


def _short(lines: list[str]) -> tuple[str, ...]:
    return (*lines[:20], f"... ({len(lines)} ranks)") if len(lines) > 20 else tuple(lines)


def _log(*lasts: int) -> str:
    return "".join(f"[rank{rank}]: step {step}\n" for step in range(max(lasts) + 1) for rank in range(len(lasts))
                   if step <= lasts[rank])  # fmt: skip


WHOLE, SHORT = {"w": [1.0, 2.0, 3.0]}, {"w": [1.0, 2.0, None]}
CHECK = Check(
    name="StallAtEnd",
    place=5,
    inputs=("--training-job", "--trial", "--log"),
    check=check,
    remedy=(
        ("Give every rank the same number of samples, and so of batches: DistributedSampler(..., drop_last=True), "
        "DataLoader(..., drop_last=True), and files that can be divided among the ranks."),
        "Where that cannot be, let ranks that are through take part: torch.distributed.algorithms.join.Join.",
    ),
    examples=(
        Example("one worker has a batch less", "found", trial={"worker_0": WHOLE, "worker_1": SHORT}),
        Example("ranks of a log, far apart", "found", log=_log(9, 5)),
        Example("one step apart at the end", "found", log=f"{_log(9, 8)}Reporting training FAILURE\n"),
        Example(
            "an epoch that was shorter for one",
            "found",
            log="rank 0 epoch 0 step 9\nrank 1 epoch 0 step 8\nrank 0 epoch 1 step 0\nrank 1 epoch 1 step 0\n",
        ),
        Example("all workers end together", "ok", trial={"worker_0": WHOLE, "worker_1": WHOLE}),
        Example("ranks of a log end together", "ok", log=_log(9, 9)),
        Example("each has its own rhythm", "ok", log="rank 0 step 0\nrank 0 step 1\nrank 1 step 0\nrank 0 step 2\n"
                "rank 0 step 3\nrank 1 step 3\nrank 0 step 4\nrank 0 step 5\n"),
        Example("one step apart, and it may go on", "not checked", log=_log(9, 8)),
        Example("one worker", "not checked", trial={"worker_0": WHOLE}),
        Example("no rank in the log", "not checked", log="step 1\nstep 2\n"),
    ),
)  # fmt: skip
