"""Catches what goes into and comes out of chosen layers, in the one forward pass before a step that is saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evaluator.hooks._torch_step import Collected
from evaluator.names_of_parameters import plain_names
from evaluator.saving.failures import Failures

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

FUNCTIONS = ("ReLU", "ReLU6", "GELU", "ELU", "SiLU", "Tanh", "Sigmoid")
"""Activation modules that built-in rules look at: dead, saturated, or out of scale."""
EMBEDDINGS = ("Embedding", "EmbeddingBag")
"""Modules whose input are tokens; of their output nothing is saved."""

Chosen = str | Sequence[str] | bool | None


class Activations:
    """Hooks on modules that are there only while they are wanted, so that other steps cost nothing."""

    def __init__(self, model: Module, loss_function: Module | None, chosen: Chosen, failures: Failures) -> None:
        """Choose the modules, and name them as their author did.

        Args:
            model: the one that is called, wrapped or not.
            loss_function: one that is not part of the model, and is not told when that evaluates.
            chosen: patterns of names of further modules; False for none at all.
            failures: where to count.
        """
        self._failures = failures
        self._model = model
        self._handles: list[Any] = []
        self._found: Collected | None = None
        self._calls: dict[str, int] = {}
        self._modules: list[tuple[str, str, Module]] = []
        self._catchers: list[tuple[Callable[..., Any], Callable[..., None]]] | None = None
        if chosen is False:
            return
        patterns = [chosen] if isinstance(chosen, str) else [] if isinstance(chosen, bool | None) else list(chosen)
        self._modules += _choose(model, [re.compile(pattern) for pattern in patterns], failures)
        if loss_function is not None:
            self._modules.append((type(loss_function).__name__, "io", loss_function))

    def begin(self, found: Collected) -> None:
        """From now on, catch what the next forward pass does."""
        self._found = found
        self._calls.clear()
        if self._catchers is None:
            self._catchers = list(self._made())
        self._handles += [register(catcher) for register, catcher in self._catchers]

    def end(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            with self._failures.guard("a hook was not taken off"):
                handle.remove()
        self._handles.clear()
        self._found = None

    def _made(self) -> Iterator[tuple[Callable[..., Any], Callable[..., None]]]:
        """What registers a hook, and the hook."""
        for name, what, module in self._modules:
            if "i" in what:
                yield module.register_forward_pre_hook, self._catcher(f"{name}_input")
            if "o" in what:
                yield module.register_forward_hook, self._catcher(f"{name}_output")

    def _catcher(self, name: str) -> Any:
        """A hook for either side of a module: the last argument is what goes in, or comes out."""

        def catch(module: Module, *arguments: Any) -> None:
            if self._found is None or not self._model.training or _in_backward():
                return
            if module is self._model:
                # Of several forward passes before a step (accumulation), the last one counts.
                self._calls.clear()
            self._catch(name, arguments[-1])

        return catch

    def _catch(self, name: str, values: Any) -> None:
        with self._failures.guard(f"tensor {name!r} was not saved"):
            for tensor in _tensors(values):
                number = self._calls.get(name, 0)
                self._calls[name] = number + 1
                if self._found is not None:
                    self._found.add_samples(f"{name}_{number}", tensor)


def _choose(
    model: Module, patterns: Sequence[re.Pattern[str]], failures: Failures
) -> Iterator[tuple[str, str, Module]]:
    """Name, sides ("i" input, "o" output) and module of all that is caught.

    The name says what the module is where its own does not, since rules find activations by their names.
    """
    compiled = _compiled(model)
    names = plain_names(name for name, _ in model.named_modules() if name)
    for full, module in model.named_modules():
        if full in compiled:
            continue
        if not full:
            yield type(_innermost(model)).__name__, "i", module
            continue
        name, kind = names[full], type(module).__name__
        if not name:
            continue  # what a wrapper holds
        last = name.rpartition(".")[2].lower()
        with failures.guard(f"layer {name!r} is not watched"):
            if _is_loss(module):
                yield (name if kind.lower() in last else f"{name}.{kind}"), "io", module
            elif kind in FUNCTIONS:
                yield (name if kind.lower() in last else f"{name}.{kind.lower()}"), "io", module
            elif any(pattern.search(name) for pattern in patterns):
                yield name, "io", module
            elif kind in EMBEDDINGS:
                yield (name if "embed" in last else f"{name}.embedding"), "i", module


def _compiled(model: Module) -> set[str]:
    """The names of modules that are compiled: hooks inside would become part of that, for good."""
    found: set[str] = set()
    for name, module in model.named_modules():
        above, _, last = name.rpartition(".")
        is_compiled = last == "_orig_mod" or getattr(module, "_compiled_call_impl", None) is not None
        if is_compiled or (name and above in found):
            found.add(name)
    return found


def _is_loss(module: Module) -> bool:
    """Whether a module computes a loss; PyTorch's own classes are named so."""
    return type(module).__name__.endswith("Loss")


def _innermost(model: Module) -> Module:
    """The model inside of its wrappers."""
    for part in ("_orig_mod", "module", "_fsdp_wrapped_module"):
        inside = getattr(model, part, None)
        if inside is not None and len(list(model.children())) == 1 and not _plain(model):
            return _innermost(inside)
    return model


def _plain(model: Module) -> bool:
    """Whether a model is its author's own and no wrapper of PyTorch."""
    return not type(model).__module__.startswith("torch.")


def _tensors(values: Any) -> Iterator[Tensor]:
    """The tensors in what a module takes or gives: one, or some in a tuple, a list or an object with keys."""
    import torch  # noqa: PLC0415 - only the user's script needs it

    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, tuple | list):
        for value in values:
            yield from _tensors(value)
    elif hasattr(values, "values") and hasattr(values, "keys"):
        for value in values.values():
            yield from _tensors(value)


def _in_backward() -> bool:
    """Whether a backward pass runs: with activation checkpointing, layers are then called once more."""
    import torch  # noqa: PLC0415 - only the user's script needs it

    running = getattr(torch._C, "_current_graph_task_id", None)  # noqa: SLF001 - there is no public question
    return running is not None and running() != -1
