"""From single outcomes to rows: what each set of rules makes of each kind, and of the zoo as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.incidents import Share, share
from benchmarks.zoo.judging import Outcome
from benchmarks.zoo.kind import Kind
from benchmarks.zoo.score import Score, score


@dataclass(frozen=True)
class KindResult:
    """All runs of one kind, judged by one set of rules."""

    kind: Kind
    runs: int
    has_rule: bool
    """Whether a rule that is for the fault exists."""
    scores: list[Score] = field(default_factory=list)
    """Of faulty runs, by seed."""
    alarms: list[list[str]] = field(default_factory=list)
    """Of healthy runs: the rules that fired in each."""

    @property
    def recalled(self) -> Share:
        """Runs in which a rule that is for the fault fired."""
        return share(one.recalled for one in self.scores)

    @property
    def first(self) -> Share:
        """Runs in which that is what is told first."""
        return share(one.first for one in self.scores)

    @property
    def placed(self) -> Share:
        """Of the runs in which it was found and has a place: those in which the place is right."""
        return share(one.placed for one in self.scores if one.placed is not None)

    @property
    def alarmed(self) -> Share:
        """Healthy runs with a finding."""
        return share(bool(rules) for rules in self.alarms)

    @property
    def rules(self) -> Counter[str]:
        """The rules with false alarms, or with findings that have nothing to do with the fault; by runs."""
        named: Iterable[Iterable[str]] = self.alarms or [one.strangers for one in self.scores]
        return Counter(rule for rules in named for rule in set(rules))


def middle_of(results: Iterable[KindResult], what: Callable[[Score], int | None]) -> float | None:
    """The median over runs, of those that have a value; None of none."""
    values = [value for result in results for one in result.scores if (value := what(one)) is not None]
    return median(values) if values else None


def collect(
    kinds: Sequence[Kind], outcomes: Sequence[Outcome], parameter_set: str, rules: Iterable[str]
) -> list[KindResult]:
    """One result per kind, in the order of the kinds."""
    known = set(rules)
    results = []
    for kind in kinds:
        own = sorted((one for one in outcomes if one.kind == kind.name), key=lambda one: one.seed)
        fault = kind.fault
        result = KindResult(kind, len(own), fault is None or bool(known.intersection(fault.rules)))
        for one in own:
            found = one.found[parameter_set]
            if fault is None:
                result.alarms.append([finding.rule for finding in found])
            else:
                result.scores.append(score(fault, one.begins or 0, one.steps, found))
        results.append(result)
    return results


@dataclass(frozen=True)
class Whole:
    """The zoo as a whole, judged by one set of rules."""

    healthy: list[KindResult]
    faulty: list[KindResult]

    @classmethod
    def of(cls, results: Sequence[KindResult]) -> Whole:
        """Sort out which is which."""
        return cls(
            [one for one in results if one.kind.fault is None], [one for one in results if one.kind.fault is not None]
        )

    def runs(self, what: Callable[[KindResult], Share]) -> Share:
        """Over all faulty runs."""
        parts = [what(one) for one in self.faulty]
        return Share(sum(part.hits for part in parts), sum(part.of for part in parts))

    @property
    def kinds(self) -> Share:
        """Kinds of fault of which every run was found."""
        return share(one.recalled.hits == one.runs for one in self.faulty)

    @property
    def kinds_at_all(self) -> Share:
        """Kinds of fault of which any run was found."""
        return share(one.recalled.hits > 0 for one in self.faulty)

    @property
    def alarmed(self) -> Share:
        """Healthy runs with a finding."""
        return share(bool(rules) for one in self.healthy for rules in one.alarms)

    @property
    def alarms_per_run(self) -> float:
        """Findings per healthy run."""
        counts = [len(rules) for one in self.healthy for rules in one.alarms]
        return sum(counts) / len(counts) if counts else 0.0
