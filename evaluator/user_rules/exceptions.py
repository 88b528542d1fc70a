"""What the API raises, with the attributes and texts that rule files and their tests rely on.

All of them can be pickled: each passes its arguments on as it got them, so that a process can hand one to another.

Source:
    smdebug-api.md, section 4; texts compared with smdebug 1.0.34 by `make conformance`.
"""

from __future__ import annotations

from evaluator.user_rules.modes import ModeKeys, modes

__all__ = [
    "IndexReaderException",
    "InsufficientInformationForRuleInvocation",
    "InvalidCollectionConfiguration",
    "InvalidWorker",
    "MissingCollectionFiles",
    "NoMoreData",
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "SMDebugCustomerError",
    "SMDebugError",
    "SMDebugNotImplementedError",
    "SMDebugRuntimeError",
    "SMDebugTypeError",
    "SMDebugValueError",
    "ShapeUnavailableForStep",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
    "modes",
]


class SMDebugError(Exception):
    """The base of all."""


class SMDebugCustomerError(SMDebugError):
    """Something that only the user can put right."""


class SMDebugTypeError(SMDebugError, TypeError):
    """An argument has the wrong type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Something cannot go on."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """Something is not there."""


class SMDebugValueError(SMDebugError, ValueError):
    """An argument has a wrong value."""


class InvalidCollectionConfiguration(SMDebugError):
    """A collection selects nothing."""

    def __init__(self, c_name: str) -> None:
        """Name the collection."""
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        """Say what to fill in."""
        return f"Collection {self.c_name} has not been configured.         Please fill in tensor_name or include_regex"


class StepNotYetAvailable(SMDebugError):
    """The step may still come."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        """Name the step."""
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        """Say which step."""
        return f"Step {self.step} of mode {self.mode.name} not yet available"


class MissingCollectionFiles(SMDebugError):
    """The run has ended without a collections file of each worker."""

    def __str__(self) -> str:
        """Say so."""
        return "Training job has ended. All the collection files could not be loaded"


class IndexReaderException(SMDebugError):
    """An index file, or the name of one, is not what it has to be."""

    def __init__(self, message: str) -> None:
        """Hold the message."""
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        """The message."""
        return self.message


class StepUnavailable(SMDebugError):
    """The step was not saved and never will be."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        """Name the step."""
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        """Say which step."""
        return f"Step {self.step} of mode {self.mode.name} is not available as it was not saved"


class TensorUnavailableForStep(SMDebugError):
    """The step is there, this tensor's value (or reduction) in it is not."""

    def __init__(self, tname: str, step: int, mode: ModeKeys = modes.GLOBAL, has_reductions: bool = False) -> None:
        """Name tensor (for a missing reduction: the reduction) and step."""
        super().__init__(tname, step, mode, has_reductions)
        self.step = step
        self.mode = mode
        self.tname = tname
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        """Say what is missing, and whether reductions are there."""
        text = (
            f"Value for tensor {self.tname} is not available for step {self.step} "
            f"with mode {self.mode.name} as it was not saved."
        )
        hint = "This tensor has reductions saved for this step. You might want to query for the reductions."
        return text + hint if self.has_reductions else text


class TensorUnreadable(TensorUnavailableForStep, SMDebugRuntimeError):
    """The value was saved, but its bytes are missing or damaged; `problem` says how."""

    def __init__(self, tname: str, step: int, mode: ModeKeys, problem: str) -> None:
        """Name tensor and step, and what is wrong with the bytes."""
        super().__init__(tname, step, mode)
        self.args = (tname, step, mode, problem)
        self.problem = problem

    def __str__(self) -> str:
        """Say what is wrong with the bytes."""
        where = f"step {self.step} with mode {self.mode.name}"
        return f"Value for tensor {self.tname} cannot be read for {where}: {self.problem}"


class ShapeUnavailableForStep(SMDebugError):
    """Neither the shape nor the value was saved at the step."""

    def __init__(self, tname: str, step: int, mode: ModeKeys = modes.GLOBAL) -> None:
        """Name tensor and step."""
        super().__init__(tname, step, mode)
        self.step = step
        self.mode = mode
        self.tname = tname

    def __str__(self) -> str:
        """Say what is missing."""
        where = f"step {self.step} with mode {self.mode.name}"
        return f"Shape for tensor {self.tname} is not available for {where} as it was not saved."


class TensorUnavailable(SMDebugError):
    """No step seen so far has this tensor."""

    def __init__(self, tname: str) -> None:
        """Name the tensor."""
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        """Say which tensor."""
        return f"Tensor {self.tname} was not saved."


class InvalidWorker(SMDebugError):
    """The worker did not save this tensor at this step."""

    def __init__(self, worker: str) -> None:
        """Name the worker."""
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        """Say which worker."""
        return f"Invalid Worker: {self.worker}"


class NoMoreProfilerData(SMDebugError):
    """The profile ends before this time."""

    def __init__(self, timestamp: int) -> None:
        """Name the time."""
        super().__init__(timestamp)
        self.timestamp = timestamp
        self.msg = f"Looking for timestamp {timestamp} and reached end of training."

    def __str__(self) -> str:
        """Say which time."""
        return self.msg


class NoMoreData(SMDebugError):
    """The run has ended before this step."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int) -> None:
        """Name the step and the last one there is, -1 for none."""
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step
        self.msg = (
            f"Looking for step {step} of mode {mode.name} and reached end of training. "
            f"Max step available is {last_step}"
        )

    def __str__(self) -> str:
        """Say which step, and which is the last."""
        return self.msg


class RuleEvaluationConditionMet(SMDebugError):
    """The rule's condition holds at a step."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        """Name rule and step; `end_of_rule` stops `invoke_rule`."""
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        """Say which rule and step."""
        return f"Evaluation of the rule {self.rule_name} at step {self.step} resulted in the condition being met"


class InsufficientInformationForRuleInvocation(SMDebugError):
    """For rule authors: what the rule needs was not given."""

    def __init__(self, rule_name: str, message: str) -> None:
        """Name the rule and what it lacks."""
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        """Say what is lacking."""
        return f"Insufficient information to invoke rule {self.rule_name}: {self.message}"
