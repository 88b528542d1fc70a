"""stop_file: asks a training script outside of SageMaker to end, by the file `STOP` that our writers and hooks obey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import Field

from evaluator import strict_json
from evaluator.actions.base import ActionParameters, Call, Kind, NotDone, Surroundings
from evaluator.saving.files import publish
from evaluator.saving.stop_file import STOP


class StopFileParameters(ActionParameters):
    """Where the file goes."""

    folder: str | None = Field(
        default=None,
        min_length=1,
        description="The folder that the script saves under; where it is not given, the trial's.",
    )


def act(call: Call[StopFileParameters]) -> Mapping[str, object]:
    """Write it, where there is none."""
    folder = _folder(call.parameters, call.around)
    if folder is None:
        raise NotDone(f"the trial {call.around.trial} is in no local folder; give folder")
    path = folder / STOP
    try:
        if path.exists():
            return {"file": str(path), "was": "there"}
        if not folder.is_dir():
            # a folder of another machine, made here, would be obeyed by nobody
            raise NotDone(f"there is no folder {str(folder)!r}")
        why = {"schema": 1, "finding": call.finding.id, "rule": call.finding.rule, "step": call.finding.step}
        publish(folder, STOP, strict_json.dumps(why) + b"\n")
    except OSError as error:
        raise NotDone(f"{path} cannot be written: {error.strerror or error}") from error
    return {"file": str(path)}


def check(parameters: StopFileParameters, around: Surroundings) -> Sequence[tuple[str, str]]:
    """A script looks for the file in a folder only."""
    if _folder(parameters, around) is not None:
        return ()
    what = f"the trial is at {around.trial}, where no script looks for a file {STOP}"
    return [(what, "give folder, a local folder that the script saves under")]


def _folder(parameters: StopFileParameters, around: Surroundings) -> Path | None:
    where = parameters.folder or around.trial
    if where.startswith("file://"):
        where = unquote(urlsplit(where).path)
    elif "://" in where:
        return None
    path = Path(where)
    # a trial may be a single file, such as the log of a script
    return path.parent if path.is_file() else path


ACTION = Kind("stop_file", StopFileParameters, act, check)
