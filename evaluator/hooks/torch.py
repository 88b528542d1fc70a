"""Saves a PyTorch training as a trial, with two lines in the script beside the import.

    from evaluator.hooks.torch import Hook

    hook = Hook(model, "trial")
    for batch in batches:
        ...                                   # forward, backward, optimizer.step()
        if hook.step(loss=loss):              # True when a file named STOP asks the run to end
            break

Every 100th step is saved: the parameters (collections `weights` and `biases`), their gradients as the optimizer got
them (`gradient/NAME`), what went into and came out of activation layers (`relu1_input_0`, `relu1_output_0`), the input
of the model (`Net_input_0`), tokens, and what `step` is given.
Tensors of more than `most_elements` are saved as reductions, which are computed where the tensor is; of activations the
first samples are saved. Files are written by a thread. Whatever fails is one warning, and the training goes on.

Under DDP and FSDP each rank saves as a worker of its own, under FSDP its shards.
Where the model is compiled as a whole, activations inside are not seen: make the hook after `torch.compile`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluator.errors import FormatError, did_you_mean
from evaluator.hooks._hooked_trial import HookedTrial, by_kind
from evaluator.hooks._torch_activations import Activations, Chosen
from evaluator.hooks._torch_step import SAVES, Collected, Save
from evaluator.modes import Mode
from evaluator.names_of_parameters import plain_names

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

MOST_ELEMENTS = 2**16
"""256 KiB of float32; ours: all of a small model is saved, and of a large one some megabytes a step."""
MOST_OF_SAMPLES = 2**14
"""64 KiB of float32; ours: layers are many, and some samples tell as much as all."""


_TRAIN = Mode.TRAIN


class Hook:
    """Saves what a model does, every so many steps."""

    def __init__(
        self,
        model: Module,
        folder: str | os.PathLike[str],
        *,
        every: int = 100,
        losses_every: int | None = None,
        save: Save = "auto",
        most_elements: int = MOST_ELEMENTS,
        most_of_samples: int = MOST_OF_SAMPLES,
        activations: Chosen = None,
        loss_function: Module | None = None,
        **trial: Any,
    ) -> None:
        """Nothing is written yet.

        Args:
            model: the one that is called in training, wrapped or not.
            folder: the trial's, made when it is not there.
            every: so many training steps lie between two that are saved.
            losses_every: what `step` is given can be saved more often; rules about losses want twenty of them.
            save: parameters and gradients as "values", "reductions", or "auto": values of those with at most
                `most_elements`, and reductions of others.
            most_elements: see `save`.
            most_of_samples: so many elements of an activation, input or output are saved, in whole samples.
            activations: patterns of names of layers that are saved besides the usual ones; False for none.
            loss_function: a module whose inputs and output are saved, as `CrossEntropyLoss_output_0`.
            trial: `workers="one"` (only the first rank saves), `keep_steps`, `keep_bytes`, `rank_of`.
        """
        self._trial = HookedTrial(folder, **{"rank_of": _rank_and_size(), **trial})
        self._failures = self._trial.failures
        self._guard = self._failures.guard("a step was not saved")
        self._model = model
        self._steps = 0
        self._every = max(1, every)
        self._losses_every = self._every if losses_every is None else max(1, losses_every)
        self._handle: Any = None
        self._activations: Activations | None = None
        self._save, self._most, self._most_of_samples = save, most_elements, most_of_samples
        self._caught = self._nothing()
        self._gradients = self._nothing()
        with self._failures.guard("the model is not watched"):
            if save not in SAVES:
                self._save = "auto"
                raise FormatError("Hook", f"save is {save!r}", did_you_mean(str(save), SAVES))
            self._activations = Activations(model, loss_function, activations, self._failures)
            self._watch()

    @property
    def failures(self) -> int:
        """How often something could not be saved."""
        return self._failures.count

    def step(self, loss: Tensor | float | None = None, *, mode: Mode | str | None = None, **values: Any) -> bool:
        """To be called once for each step, after the optimizer's; whether the run was asked to end.

        Args:
            loss: of this step.
            mode: by default TRAIN, or EVAL where the model is set to evaluate.
            values: further numbers and tensors, such as accuracy=0.9, labels=labels.
        """
        with self._guard:
            now = _mode(mode) if mode is not None else _TRAIN if self._model.training else Mode.EVAL
            if now is not _TRAIN:
                self.record(mode=now, **_given(loss, values))
            else:
                self._train_step(loss, values)
        return self._trial.should_stop(self._steps)

    def record(self, *, mode: Mode | str = Mode.EVAL, **values: Any) -> None:
        """Save numbers or tensors as a step of their own, such as a loss of validation."""
        with self._failures.guard("a step was not saved"):
            self._save_given(*self._trial.count(_mode(mode)), _mode(mode), values)

    @property
    def should_stop(self) -> bool:
        """Whether a file named STOP in the trial's folder asks the run to end."""
        return self._trial.should_stop(self._steps)

    def close(self, *, end: bool = True) -> None:
        """Write what still waits, and mark the run as ended; done by itself when the script ends."""
        with self._failures.guard("the hook was not taken off"):
            self._unwatch()
        self._trial.close(end=end)

    def _train_step(self, loss: Tensor | float | None, values: Mapping[str, Any]) -> None:
        number = self._steps
        self._steps = number + 1
        step, mode_step = self._trial.count(_TRAIN)
        if number % self._every == 0 and self._trial.saves:
            self._unwatch()
            self._save_step(step, mode_step, _given(loss, values))
        elif number % self._losses_every == 0:
            self._save_given(step, mode_step, _TRAIN, _given(loss, values))
        if self._steps % self._every == 0 and self._trial.saves:
            self._watch()

    def _save_step(self, step: int, mode_step: int, given: Mapping[str, Any]) -> None:
        activations = self._caught.names()
        found, self._caught = self._caught, self._nothing()
        parameters = dict(self._model.named_parameters())
        plain = plain_names(parameters)
        gradients = []
        for full, parameter in parameters.items():
            name = f"gradient/{plain[full]}"
            # Not every training has an optimizer of PyTorch, whose step would have told.
            if name in self._gradients or (parameter.grad is not None and self._gradients.add(name, parameter.grad)):
                gradients.append(name)
        weights = [name for full, name in plain.items() if found.add(name, parameters[full])]
        found.update(self._gradients)
        self._gradients = self._nothing()
        collections = {
            "weights": [name for name in weights if not _is_bias(name)],
            "biases": [name for name in weights if _is_bias(name)],
            "gradients": gradients,
            "losses": [name for name in activations if name.rpartition(".")[2].endswith("Loss_output_0")],
            "activations": activations,
        }
        for name, members in self._take(found, given).items():
            collections.setdefault(name, []).extend(members)
        more: Any = {"reductions": found.reductions(), "collections": collections}
        self._trial.save(step, found.values, mode=Mode.TRAIN, mode_step=mode_step, **more)

    def _save_given(self, step: int, mode_step: int, mode: Mode, given: Mapping[str, Any]) -> None:
        found = self._nothing()
        collections = self._take(found, given)
        self._trial.save(step, found.values, mode=mode, mode_step=mode_step, collections=collections)

    def _take(self, found: Collected, given: Mapping[str, Any]) -> dict[str, list[str]]:
        """Collect what the script gave, and say to which collections it belongs."""
        import torch  # noqa: PLC0415 - only the user's script needs it

        for name, value in given.items():
            if value is not None:
                found.add_samples(name, value if isinstance(value, torch.Tensor) else torch.as_tensor(value))
        collections = by_kind(given)
        collections.update({name: [name] for name in ("labels", "predictions") if name in given})
        return collections

    def _watch(self) -> None:
        """Catch what the next step does."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook  # noqa: PLC0415 - the user's script has it

        self._unwatch()
        self._caught, self._gradients = self._nothing(), self._nothing()
        parameters = dict(self._model.named_parameters())
        plain = plain_names(parameters)
        names = {id(parameter): plain[full] for full, parameter in parameters.items()}

        def before_step(optimizer: Optimizer, *_: Any) -> None:
            """Take the gradients as they are used: unscaled, clipped, and not yet set to zero."""
            with self._failures.guard("gradients were not saved"):
                scale = getattr(optimizer, "grad_scale", None)
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        name = names.get(id(parameter))
                        if name is not None and parameter.grad is not None:
                            gradient = parameter.grad if scale is None else parameter.grad / scale
                            self._gradients.add(f"gradient/{name}", gradient)

        self._handle = register_optimizer_step_pre_hook(before_step)
        if self._activations is not None:
            self._activations.begin(self._caught)

    def _unwatch(self) -> None:
        if self._activations is not None:
            self._activations.end()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _nothing(self) -> Collected:
        return Collected(self._save, self._most, self._most_of_samples, self._failures)


def _is_bias(name: str) -> bool:
    """Whether a parameter is a bias; those of recurrent layers are called `bias_ih_l0`."""
    return "bias" in name.rpartition(".")[2]


def _given(loss: Tensor | float | None, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the script gave to a step."""
    return values if loss is None else {"loss": loss, **values}


def _mode(mode: Mode | str) -> Mode:
    """A mode, by itself or by its name."""
    return mode if isinstance(mode, Mode) else Mode[mode.upper()]


def _rank_and_size() -> tuple[int, int] | None:
    """This process among those of torch.distributed, where that was set up."""
    from torch import distributed  # noqa: PLC0415 - only the user's script needs it

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return None
