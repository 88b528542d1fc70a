"""rule_file: does what a rule's own file asks for, by the actions that it makes as smdebug's rules do.

Such a file has no credentials of its own, so nothing of this is done unless the job's configuration says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from evaluator.actions import email, sms, stop_training
from evaluator.actions.base import Action, ActionParameters, Call, Kind, NotDone
from evaluator.actions.text import ACTIONS_KEY, named_values

_KINDS: Mapping[str, Kind[ActionParameters]] = {
    "email": email.ACTION,  # type: ignore[dict-item]
    "sms": sms.ACTION,  # type: ignore[dict-item]
    "stoptraining": stop_training.ACTION,  # type: ignore[dict-item]
}
"""Source: smdebug-api.md, section 10: the actions that a rule can make."""


class RuleFileParameters(ActionParameters):
    """Nothing: the file says what."""


def act(call: Call[RuleFileParameters]) -> Mapping[str, object]:
    """Do all of them, whatever becomes of single ones."""
    asked = call.finding.details.get(ACTIONS_KEY)
    done: list[object] = []
    failed: list[str] = []
    for entry in asked if isinstance(asked, list) else []:
        given = named_values(entry) or {}
        name = str(given.pop("name", ""))
        kind = _KINDS.get(name)
        try:
            if kind is None:
                raise NotDone("is none that a rule file can ask for")
            # the file is not to be trusted: only what a configuration could say is done
            parameters = kind.parameters.model_validate(given)
            action = Action(name, name, kind, parameters)
            done.append({"use": kind.name, **action.do(call.finding, call.around, call.clock)})
        except ValidationError:
            failed.append(f"{name}: its parameters do not fit")
        except NotDone as error:
            failed.append(f"{name or 'an action without a name'}: {error}")
    if failed:
        raise NotDone("; ".join(failed))
    return {"done": done}


ACTION = Kind("rule_file", RuleFileParameters, act, concerns=lambda finding: ACTIONS_KEY in finding.details)
