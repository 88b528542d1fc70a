"""What a hook saved, read back without the code that wrote it, and what all rules say to it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.formats.collection_file import parse_collections
from evaluator.formats.event import decode_event
from evaluator.formats.index_file import parse_index
from evaluator.formats.key_names import parse_index_key
from evaluator.formats.tfrecord import read_record
from evaluator.registry import builtin_rules
from evaluator.testing import evaluate

Steps = dict[int, dict[str, Any]]


def saved(folder: Path, worker: str = "worker_0") -> Steps:
    """Step -> name -> value, of one worker; the mode stands under the name ""."""
    found: Steps = {}
    for path in folder.glob("index/*/*.json"):
        key = path.relative_to(folder).as_posix()
        step, of = parse_index_key(key) or (-1, "")
        if of != worker:
            continue
        index = parse_index(path.read_bytes(), key)
        data = (folder / str(index.event_file_name)).read_bytes()
        values: dict[str, Any] = {"": index.mode}
        for name, start, length in zip(index.names, index.starts.tolist(), index.lengths.tolist(), strict=True):
            event = decode_event(read_record(data, start, length))
            assert event is not None
            values[name] = event.values
        found[step] = values
    return dict(sorted(found.items()))


def collections(folder: Path, worker: str = "worker_0") -> dict[str, set[str]]:
    """Collection -> the tensors that it names."""
    data = (folder / f"collections/000000000/{worker}_collections.json").read_bytes()
    return {name: set(one.tensor_names) for name, one in parse_collections(data, "").collections.items()}


@cache
def _rules() -> tuple[RuleConfiguration, ...]:
    made = (configure(RuleRequest(name, {}, "candidate", name), rule) for name, rule in builtin_rules().items())
    return tuple(one for one in made if isinstance(one, RuleConfiguration))


def findings(folder: Path) -> dict[str, str]:
    """Rule -> tensor, of each rule that fired, with recommended parameters."""
    result = evaluate(str(folder), _rules())

    assert result.failure == ""
    return {finding.rule: str(finding.tensor) for finding in result.findings}
