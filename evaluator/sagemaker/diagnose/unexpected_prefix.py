"""Names of parameters carry the prefix of a wrapper (`module.`, `_orig_mod.`, ...), so that they do not load elsewhere.

DDP, FSDP, torch.compile and others put a part into every name of a model that they wrap. Names of the trial (weights,
biases and gradients) and keys of checkpoints are looked at. `model.`, with which many authors begin themselves, counts
where every key of a checkpoint has it, or where the same names without it are in another checkpoint or in the trial.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on prefixes; user report 51.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluator.names_of_parameters import plain_names
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result
from evaluator.sagemaker.diagnose._evidence import Evidence, mapped

MODEL = "model."
GRADIENT = "gradient/"


def check(evidence: Evidence) -> Result:
    """What the names of each checkpoint and of the trial are without wrappers."""
    sets = {one.path: list(one.keys) for one in evidence.checkpoints if one.keys}
    if evidence.trial is not None and evidence.trial.parameters:
        saved = (name.removeprefix(GRADIENT) for name in evidence.trial.parameters)
        sets[evidence.trial.path] = list(dict.fromkeys(saved))
    if not sets:
        why = "needs a checkpoint, or a trial with weights, biases or gradients"
        return NotChecked(evidence.lacks(why, "trial"))
    lines: list[str] = []
    told = []
    for where, names in sets.items():
        others = {plain for path, several in sets.items() if path != where for plain in plain_names(several).values()}
        renamed = _renamed(names, others, whole=evidence.trial is None or where != evidence.trial.path)
        if renamed:
            told.append(f"{len(renamed)} of {len(names)} names in {where}")
            lines += [f"{where}: {line}" for line in mapped(renamed)]
    if not told:
        return Ok(f"no name of {sum(map(len, sets.values()))} has the prefix of a wrapper")
    return Found(f"parameters carry the prefix of a wrapper: {'; '.join(told)}", tuple(lines))


def _renamed(names: list[str], elsewhere: Iterable[str], *, whole: bool) -> Mapping[str, str]:
    """Name -> what it is without wrappers, for those that are not so already; `whole`: the model has no other names."""
    plain = plain_names(names)
    inner = {name: one.removeprefix(MODEL) for name, one in plain.items()}
    every = whole and all(one.startswith(MODEL) for one in plain.values())
    known = set(elsewhere)
    # a name that is the same elsewhere is meant so
    moved = {one for name, one in plain.items() if one != inner[name] and inner[name] in known and one not in known}
    unambiguous = len(set(inner.values())) == len(inner)
    kept_elsewhere = bool(known) and known.issuperset(plain.values())
    if unambiguous and not kept_elsewhere and (every or moved):
        plain = {name: inner[name] if every or one in moved else one for name, one in plain.items()}
    return {name: one for name, one in plain.items() if one != name}


CHECK = Check(
    name="UnexpectedPrefix",
    place=2,
    inputs=("--checkpoint", "--trial"),
    check=check,
    remedy=(
        (
            "Save the model inside of its wrappers: `model.module.state_dict()` under DDP, "
            "`model._orig_mod.state_dict()` after torch.compile, a full state dict under FSDP."
        ),
        (
            "Or rename when loading: `from evaluator.names_of_parameters import plain_names`, then "
            "`{plain: state_dict[name] for name, plain in plain_names(state_dict).items()}`; for `model.`: "
            "`{name.removeprefix('model.'): value for name, value in state_dict.items()}`."
        ),
        "Patterns of rules: match the part behind the prefix, as in `include_regex: fc[.]weight$`.",
    ),
    examples=(
        Example("saved under DDP", "found", checkpoints={"ckpt.json": ["module.fc.weight", "module.fc.bias"]}),
        Example(
            "compiled, and layers in FSDP",
            "found",
            checkpoints={"ckpt.json": ["_orig_mod.fc.weight", "layers.0._fsdp_wrapped_module.weight"]},
        ),
        Example("`model.` before every key", "found", checkpoints={"ckpt.json": ["model.fc.weight", "model.fc.bias"]}),
        Example(
            "`model.` here and not there",
            "found",
            checkpoints={"a.json": ["model.fc.weight", "head.weight"], "b.json": ["fc.weight", "head.weight"]},
        ),
        Example(
            "the names of a trial",
            "found",
            trial={"worker_0": {"module.fc.weight": [[1.0, 2.0]], "gradient/module.fc.weight": [[0.1, 0.2]]}},
        ),
        Example("plain names", "ok", checkpoints={"ckpt.json": ["fc.weight", "fc.bias"]}),
        Example(
            "a layer of the author's own called `model` or `module`",
            "ok",
            checkpoints={"ckpt.json": ["model.layers.0.weight", "module.weight", "lm_head.weight"]},
        ),
        Example(
            "inside of the model, not around it",
            "ok",
            checkpoints={"ckpt.json": ["encoder.module.weight", "head.bias"]},
        ),
        Example(
            "`model.` in both, as their author has it",
            "ok",
            checkpoints={"a.json": ["model.fc.weight"], "b.json": ["model.fc.weight"]},
        ),
        Example(
            "`model.` in a trial, which may hold a part of the model",
            "ok",
            trial={"worker_0": {"model.fc.weight": [[1.0, 2.0]]}},
        ),
        Example("no keys", "not checked", checkpoints={"ckpt.json": []}),
        Example("a trial that has only a loss", "not checked", trial={"worker_0": {"loss": [1.0]}}),
    ),
)
