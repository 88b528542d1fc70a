"""Reads the parts of a request, whatever its shape: what is not in the form is a flaw, the rest is used."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Iterator, Mapping

from evaluator.config.spelling import within_two_edits
from evaluator.errors import did_you_mean
from evaluator.sagemaker.check_job._request import Flaw
from evaluator.sagemaker.images import parse_image

short = reprlib.repr
"""A value in few letters, however large or deep it is."""

_FRAMEWORKS = ("xgboost", "pytorch", "tensorflow", "mxnet")

# Source: sagemaker-python-sdk 2.257.6, sagemaker/estimator.py, the names that it gives to hyperparameters
_SWITCHES = {
    "sagemaker_distributed_dataparallel_enabled": "data-parallel",
    "sagemaker_parameter_server_enabled": "parameter-server",
    "sagemaker_mpi_enabled": "horovod",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "multi-worker mirrored strategy",
    "sagemaker_pytorch_ddp_enabled": "PyTorch's distributed data parallel",
    "sagemaker_torch_distributed_enabled": "torch.distributed",
    "sagemaker_pytorch_xla_multi_worker_enabled": "PyTorch XLA",
}
_MODEL_PARALLEL = "mp_parameters"

_STEPS = ("num_round", "max_steps")
"""Hyperparameters that say how many steps there are: of XGBoost, and of Hugging Face's Trainer."""


def meant(
    document: Mapping[str, object], read: Collection[str], where: str, flaws: list[Flaw], others: Collection[str] = ()
) -> dict[str, object]:
    """What the document says of the names in `read`, misspelled ones too; each misspelling is a flaw.

    Args:
        document: as it was written.
        read: names that matter here.
        where: the place of the document.
        flaws: what is found is added here.
        others: names that are known and do not matter.
    """
    found: dict[str, object] = {}
    for key, value in document.items():
        if key in read:
            found[key] = value
        elif key not in others and (close := within_two_edits(key, read)) is not None:
            hint = " (AWS's guide has this misspelling)" if key == "DebugRulesConfigurations" else ""
            flaws.append(Flaw(_inside(where, key), f"{key!r} is not known", f"write {close!r}{hint}"))
            if close not in document:
                found[close] = value
    return found


def unknown_keys(document: Mapping[str, object], known: Collection[str], where: str) -> Iterator[Flaw]:
    """A flaw for each name that the API, which is strict, does not know and that is no misspelling of another one."""
    for key in document:
        if key not in known and within_two_edits(key, known) is None:
            yield Flaw(_inside(where, key), f"{key!r} is not known", did_you_mean(key, known))


def table(value: object, where: str, flaws: list[Flaw]) -> dict[str, object]:
    """An object; anything else is a flaw, and null is none at all."""
    if isinstance(value, dict):
        return value
    if value is not None:
        flaws.append(Flaw(where, f"is {short(value)}", "expected an object of names and values"))
    return {}


def tables(value: object, where: str, flaws: list[Flaw]) -> Iterator[tuple[str, dict[str, object]]]:
    """The objects of a list, each with its place."""
    if value is not None and not isinstance(value, list):
        flaws.append(Flaw(where, f"is {short(value)}", "expected a list of objects"))
    for number, one in enumerate(value if isinstance(value, list) else []):
        place = f"{where}[{number}]"
        if isinstance(one, dict):
            yield place, one
        else:
            flaws.append(Flaw(place, f"is {short(one)}", "expected an object of names and values"))


def text(value: object) -> str | None:
    """Text that is there."""
    return value if isinstance(value, str) and value.strip() else None


def framework_of_image(uri: str) -> tuple[str | None, str | None]:
    """The framework of a training image, and its version, as far as the names of AWS's images tell."""
    image = parse_image(uri)
    repository = image.repository if image else uri.rpartition("/")[2]
    framework = next((one for one in _FRAMEWORKS if one in repository), None)
    version = re.match(r"\d+(\.\d+)*", image.tag) if image and framework else None
    return framework, version[0] if version else None


def strategies_of_switches(hyperparameters: Mapping[str, object], where: str) -> dict[str, str]:
    """The strategies that hyperparameters of the SDK's own switch on, each with its place."""
    found = {}
    if _plain(hyperparameters.get(_MODEL_PARALLEL)) not in ("", "{}", "null"):
        found["model-parallel"] = f"{where}.{_MODEL_PARALLEL}"
    for name, strategy in _SWITCHES.items():
        # model parallel training is started by MPI too
        beside = strategy == "horovod" and "model-parallel" in found
        if _plain(hyperparameters.get(name)).lower() == "true" and not beside:
            found[strategy] = f"{where}.{name}"
    return found


def steps_of(hyperparameters: Mapping[str, object], where: str) -> tuple[int, str] | None:
    """How many steps training has, where a hyperparameter says it."""
    for name in _STEPS:
        value = _plain(hyperparameters.get(name))
        if value.isdecimal() and int(value) > 0:
            return int(value), f"{where}.{name}"
    return None


def _plain(value: object) -> str:
    """The value of a hyperparameter, which the SDK writes as JSON inside a string."""
    if isinstance(value, str):
        return value.strip().strip('"')
    # JSON that nobody put into a string, as people write it by hand
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    return str(value) if isinstance(value, int) else ""


def _inside(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
