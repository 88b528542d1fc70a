"""Where a processing job has its inputs and outputs: the folders that it names, or else the usual ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_ROOT = PurePosixPath("/opt/ml")
"""Where SageMaker puts everything (processing-contract.md 3.1)."""

_TENSORS, _CONFIG, _RULE = "tensors", "config", "rule"
"""How the two inputs and the output are called."""


@dataclass(frozen=True)
class LocalPaths:
    """The folders of a processing job.

    Args:
        trial: the tensors, as they are downloaded.
        config: configuration files.
        output: what is written there is uploaded.
    """

    trial: Path
    config: Path
    output: Path


def local_paths(job_file: Mapping[str, object], ml_root: Path) -> LocalPaths:
    """The folders that processingjobconfig.json names, with `ml_root` for /opt/ml.

    Inputs are known by their names. An output that is the only one needs no name: the request of a training job can
    say where it is (`LocalPath`), and not what it is called.
    """
    inputs = dict(_named(job_file.get("ProcessingInputs"), "InputName", "S3Input"))
    config = job_file.get("ProcessingOutputConfig")
    outputs = dict(_named(config.get("Outputs") if isinstance(config, dict) else None, "OutputName", "S3Output"))
    output = outputs.get(_RULE) or (next(iter(outputs.values())) if len(outputs) == 1 else None)
    processing = _ROOT / "processing"
    return LocalPaths(
        trial=_below(ml_root, inputs.get(_TENSORS) or processing / "input" / "tensors"),
        config=_below(ml_root, inputs.get(_CONFIG) or processing / "input" / "config"),
        output=_below(ml_root, output or processing / "output" / "rule"),
    )


def _named(entries: object, name_key: str, place_key: str) -> Iterator[tuple[str, PurePosixPath]]:
    """(name, local path) of each input or output that has both."""
    for entry in entries if isinstance(entries, list) else []:
        place = entry.get(place_key) if isinstance(entry, dict) else None
        path = place.get("LocalPath") if isinstance(place, dict) else None
        name = entry.get(name_key) if isinstance(entry, dict) else None
        if isinstance(name, str) and isinstance(path, str) and path.strip():
            yield name, PurePosixPath(path.strip())


def _below(ml_root: Path, path: PurePosixPath) -> Path:
    """The path, with `ml_root` in the place of /opt/ml."""
    return ml_root / path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else Path(path)
