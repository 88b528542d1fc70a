"""The hook for PyTorch: what it saves under which names, and that it changes nothing in the training."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.modes import Mode
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Segments
from tests.hooks.trials import collections, findings, saved

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make hooks` installs it")

from torch import nn  # noqa: E402 - only where it is installed

from evaluator.hooks._torch_values import REDUCTIONS as SAVED_REDUCTIONS  # noqa: E402
from evaluator.hooks._torch_values import fetched, first_rows, reduced  # noqa: E402
from evaluator.hooks.torch import Hook  # noqa: E402


class Net(nn.Module):  # type: ignore[misc, unused-ignore]
    """Layers whose names say what they are, and some whose names do not."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, width)
        self.relu1 = nn.ReLU(inplace=True)
        self.more = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.fc2 = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        return self.fc2(self.more(self.relu1(self.fc1(x))))


NAMES = ["fc1.weight", "fc1.bias", "more.0.weight", "more.0.bias", "fc2.weight", "fc2.bias"]


class Run:
    """A training of a few steps."""

    def __init__(self, folder: Path, model: Any = None, **options: Any) -> None:
        torch.manual_seed(0)
        self.folder = folder
        self.model = Net() if model is None else model
        self.loss_function = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.x, self.y = torch.randn(32, 8), torch.randint(0, 3, (32,))
        self.hook = Hook(self.model, folder, **{"every": 2, **options})

    def loss(self) -> Any:
        return self.loss_function(self.model(self.x), self.y)

    def steps(self, count: int = 5) -> Run:
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            self.optimizer.step()
            if self.hook.step(loss=loss):
                break
        return self

    def done(self) -> dict[int, dict[str, Any]]:
        self.hook.close()
        assert self.hook.failures == 0, self.hook._failures.first
        return saved(self.folder)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Run]:
    """Make a run in the test's folder."""

    def made(model: Any = None, **options: Any) -> Run:
        return Run(tmp_path, model, **options)

    return made


def test_every_so_many_steps_are_saved_with_the_first(make):
    assert list(make(every=3).steps(8).done()) == [0, 3, 6]


def test_parameters_gradients_activations_and_losses_are_saved_under_the_names_that_rules_look_for(make):
    step = make().steps(1).done()[0]

    assert list(step)[1:] == [
        "Net_input_0",
        "relu1_input_0",
        "relu1_output_0",
        "more.1.tanh_input_0",
        "more.1.tanh_output_0",
        *NAMES,
        *(f"gradient/{name}" for name in NAMES),
        "loss",
    ]
    assert step[""] is Mode.TRAIN


def test_collections_hold_them(make, tmp_path: Path):
    make().steps(1).done()

    found = collections(tmp_path)
    assert found["weights"] == {name for name in NAMES if name.endswith("weight")}
    assert found["biases"] == {name for name in NAMES if name.endswith("bias")}
    assert found["gradients"] == {f"gradient/{name}" for name in NAMES}
    assert found["losses"] == {"loss"}


def test_values_are_those_of_the_step(make):
    run = make()
    before = run.model.fc2.bias.detach().clone()
    run.steps(1)
    after, gradient = run.model.fc2.bias.detach().clone(), run.model.fc2.bias.grad.clone()
    run.steps(1)
    step = run.done()[0]

    np.testing.assert_array_equal(step["fc2.bias"], after.numpy())
    np.testing.assert_array_equal(step["gradient/fc2.bias"], gradient.numpy())
    torch.testing.assert_close(before - 0.1 * gradient, after)


def test_what_goes_into_a_layer_that_works_in_place_is_saved_before_it_does(make):
    step = make().steps(1).done()[0]

    assert step["relu1_input_0"].min() < 0
    np.testing.assert_array_equal(np.maximum(step["relu1_input_0"], 0), step["relu1_output_0"])


def test_gradients_are_saved_also_where_the_script_sets_them_to_zero_before_the_hook_is_called(make):
    run = make(every=1)
    for set_to_none in (True, False):
        run.loss().backward()
        run.optimizer.step()
        run.optimizer.zero_grad(set_to_none=set_to_none)
        run.hook.step()

    assert [bool(np.any(step["gradient/fc1.weight"])) for step in run.done().values()] == [True, True]


def test_gradients_are_saved_as_the_optimizer_gets_them_and_not_as_a_scaler_makes_them(make):
    run = make()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(run.loss()).backward()
    scaled = run.model.fc2.bias.grad.clone()
    scaler.step(run.optimizer)
    run.hook.step()

    np.testing.assert_allclose(run.done()[0]["gradient/fc2.bias"] * 1024, scaled.numpy(), rtol=1e-6)


def test_a_training_without_an_optimizer_of_pytorch_is_saved_too(make):
    run = make()
    run.loss().backward()
    run.hook.step()

    assert np.any(run.done()[0]["gradient/fc1.weight"])


def test_a_parameter_without_a_gradient_has_none(make):
    run = make()
    run.model.fc1.requires_grad_(False)
    step = run.steps(1).done()[0]

    assert "fc1.weight" in step
    assert "gradient/fc1.weight" not in step


def test_large_tensors_are_saved_as_reductions(make):
    step = make(Net(width=40), most_elements=1000).steps(1).done()[0]

    assert "more.0.weight" not in step
    assert {name for name in step if name.endswith("/more.0.weight")} == {
        f"smdebug/reductions/{reduction}/{name}"
        for reduction in SAVED_REDUCTIONS
        for name in ("more.0.weight", "gradient/more.0.weight")
    }
    assert "fc1.weight" in step


@pytest.mark.parametrize(("save", "expected"), [("values", 12), ("reductions", 0), ("auto", 12)])
def test_values_and_reductions_can_be_chosen(make, save: str, expected: int):
    step = make(save=save).steps(1).done()[0]

    assert sum(name.removeprefix("gradient/") in NAMES for name in step) == expected


def test_of_a_large_activation_the_first_samples_are_saved(make):
    step = make(most_of_samples=300).steps(1).done()[0]

    assert {name: value.shape for name, value in step.items() if "relu1" in name} == {
        "relu1_input_0": (18, 16),
        "relu1_output_0": (18, 16),
    }


@pytest.mark.parametrize(
    ("most", "expected"), [(10**6, 32), (512, 32), (300, 18), (100, 16), (16, 16), (15, 1), (1, 1)]
)
def test_so_many_samples_are_saved_that_rules_can_tell_unless_they_are_huge(most: int, expected: int):
    assert len(first_rows(torch.zeros(32, 16), most)) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "bool", "complex64"])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_reductions_on_the_device_are_those_of_the_evaluator(dtype: str, scale: float):
    values = torch.from_numpy(np.random.default_rng(0).normal(0, scale, (7, 300))).to(getattr(torch, dtype))
    array = values.float().numpy() if dtype == "bfloat16" else values.numpy()
    segments = Segments.of([array])

    expected = {name: REDUCTIONS[name](segments)[0] for name in SAVED_REDUCTIONS}
    found = fetched({"a": reduced(values.float() if dtype == "bfloat16" else values)})["a"]
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6 * scale)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_reductions_show_what_is_not_finite(value: str):
    found = fetched({"a": reduced(torch.tensor([1.0, float(value), 2.0]))})["a"]

    assert not np.isfinite(found["abs_max"])
    assert not np.isfinite(found["l2"])


def test_bfloat16_is_saved_as_the_float32_that_it_is(make):
    run = make(Net().bfloat16())
    run.x = run.x.bfloat16()
    step = run.steps(1).done()[0]

    assert {step[name].dtype for name in NAMES} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(step["fc2.bias"], run.model.fc2.bias.detach().float().numpy())


def test_losses_can_be_saved_more_often(make):
    steps = make(every=4, losses_every=2).steps(7).done()

    assert {step: len(values) > 2 for step, values in steps.items()} == {0: True, 2: False, 4: True, 6: False}
    assert all("loss" in values for values in steps.values())


def test_an_evaluation_is_a_step_of_its_own_mode(make):
    run = make().steps(1)
    run.model.eval()
    run.hook.step(loss=run.loss(), accuracy=0.5)
    run.hook.record(val_loss=torch.tensor(2.0))
    run.model.train()
    steps = run.steps(2).done()

    assert [(step, values[""].name) for step, values in steps.items()] == [
        (0, "TRAIN"), (1, "EVAL"), (2, "EVAL"), (4, "TRAIN"),
    ]  # fmt: skip
    assert list(steps[1]) == ["", "loss", "accuracy"]


def test_what_the_model_does_in_an_evaluation_is_not_taken_for_training(make):
    run = make().steps(2)
    loss = run.loss()
    run.model.eval()
    run.x, kept = run.x + 100, run.x
    run.loss()
    run.x = kept
    run.model.train()
    loss.backward()
    run.hook.step(loss=loss)

    assert abs(run.done()[2]["Net_input_0"]).max() < 50


def test_of_several_forward_passes_before_a_step_the_last_one_is_saved(make):
    run = make()
    run.loss().backward()
    run.x = run.x + 1
    run.loss().backward()
    run.optimizer.step()
    run.hook.step()
    step = run.done()[0]

    np.testing.assert_array_equal(step["Net_input_0"], run.x.numpy())
    assert "relu1_input_1" not in step


class Twice(nn.Module):  # type: ignore[misc, unused-ignore]
    """One activation module that is called twice, as in residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.relu = nn.Linear(8, 8), nn.Linear(8, 3), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.fc2(self.relu(self.fc1(self.relu(x))))


def test_a_layer_that_is_called_twice_has_two_outputs(make):
    step = make(Twice()).steps(1).done()[0]

    assert [name for name in step if "relu_output" in name] == ["relu_output_0", "relu_output_1"]


class Checkpointed(Twice):
    """Layers that are called once more in the backward pass."""

    def forward(self, x: Any) -> Any:
        from torch.utils.checkpoint import checkpoint  # noqa: PLC0415 - only here

        return checkpoint(super().forward, x, use_reentrant=False)


def test_the_second_call_of_activation_checkpointing_is_not_saved(make):
    step = make(Checkpointed()).steps(1).done()[0]

    assert [name for name in step if "relu_output" in name] == ["relu_output_0", "relu_output_1"]


def test_layers_can_be_chosen_by_their_names(make):
    step = make(activations=r"^fc\d$").steps(1).done()[0]

    assert [name for name in step if name.startswith("fc1_")] == ["fc1_input_0", "fc1_output_0"]


def test_activations_can_be_left_out(make):
    step = make(activations=False).steps(1).done()[0]

    assert [name for name in step if "put_" in name] == []


def test_a_loss_function_shows_what_goes_in_and_comes_out(make, tmp_path: Path):
    run = make()
    run.hook.close()
    run.hook = Hook(run.model, tmp_path, loss_function=run.loss_function)
    step = run.steps(1).done()[0]

    assert step["CrossEntropyLoss_input_0"].shape == (32, 3)
    np.testing.assert_array_equal(step["CrossEntropyLoss_input_1"], run.y.numpy())
    assert step["CrossEntropyLoss_output_0"] == step["loss"]
    assert collections(tmp_path)["losses"] == {"loss", "CrossEntropyLoss_output_0"}


def test_labels_and_predictions_are_collections(make, tmp_path: Path):
    run = make()
    run.hook.step(labels=run.y, predictions=run.model(run.x))
    step = run.done()[0]

    assert step["predictions"].shape == (32, 3)
    assert {name: collections(tmp_path)[name] for name in ("labels", "predictions")} == {
        "labels": {"labels"},
        "predictions": {"predictions"},
    }


def test_tokens_of_embeddings_are_saved(make):
    model = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(32, 3))
    run = make(model)
    run.x = torch.randint(0, 10, (32, 8))

    np.testing.assert_array_equal(run.steps(1).done()[0]["0.embedding_input_0"], run.x.numpy())


def test_a_sparse_gradient_is_saved_as_its_rows(make):
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten(), nn.Linear(32, 3))
    run = make(model)
    run.x = torch.full((32, 8), 3)

    assert run.steps(1).done()[0]["gradient/0.weight"].shape == (1, 4)


@pytest.mark.parametrize("wrapped", ["torch.compile", "compile", "DataParallel"])
def test_names_do_not_depend_on_what_wraps_the_model(make, wrapped: str):
    model = Net()
    if wrapped == "torch.compile":
        model = torch.compile(model, backend="eager")
    elif wrapped == "compile":
        model.compile(backend="eager")
    else:
        model = nn.DataParallel(model)
    step = make(model).steps(3).done()[2]

    assert [name for name in step if "put_" not in name][1:-1] == [*NAMES, *(f"gradient/{name}" for name in NAMES)]
    if wrapped == "DataParallel":
        assert "relu1_output_0" in step
    if wrapped != "compile":
        assert "Net_input_0" in step


def test_a_compiled_model_is_not_compiled_anew_because_of_the_hook(make):
    from torch._dynamo.utils import counters  # noqa: PLC0415 - only here

    counters.clear()
    torch._dynamo.reset()
    make(torch.compile(Net(), backend="eager"), every=1).steps(6).done()

    assert dict(counters["graph_break"]) == {}
    assert counters["stats"]["unique_graphs"] == 1


def test_a_training_comes_to_the_same_with_and_without_the_hook(tmp_path: Path):
    def trained(every: int, name: str) -> list[Any]:
        model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(), nn.ReLU(inplace=True), nn.Linear(16, 3))
        torch.manual_seed(1)
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        run = Run(tmp_path / name, copy.deepcopy(model), every=every)
        run.steps(20).done()
        return [parameter.detach().numpy() for parameter in run.model.parameters()]

    for one, other in zip(trained(1, "all"), trained(10**9, "none"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_between_two_saved_steps_the_model_has_no_hooks(make):
    run = make(every=100).steps(3)
    modules = [*run.model.modules()]

    assert [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules] == [0] * len(modules)
    run.hook.close()


def test_a_file_named_stop_ends_the_loop(make, tmp_path: Path):
    run = make(every=1)
    (tmp_path / "STOP").write_bytes(b"")
    run.steps(100)

    assert len(run.done()) == 1


class Odd(Net):
    """A model that fails where a hook looks at it."""

    def named_parameters(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no names")


def test_whatever_fails_the_training_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").write_bytes(b"")
    run = Run(tmp_path / "file" / "trial", every=1).steps(5)
    run.hook.close()
    odd = Run(tmp_path / "odd", every=1)
    odd.hook.close()
    model = Odd()
    hook = Hook(model, tmp_path / "odd", every=1)
    for _ in range(3):
        model(odd.x)
        hook.step(loss=torch.tensor(1.0), nonsense=object())
    hook.close()

    assert run.hook.failures >= 5
    assert hook.failures >= 3
    assert sum("training goes on" in message for message in caplog.messages) == 2


@pytest.mark.parametrize("options", [{"save": "everything"}, {"activations": "("}, {"mode": 3}, {"keep_steps": 0}])
def test_options_that_are_wrong_cost_only_what_they_are_about(tmp_path: Path, options: dict[str, Any]):
    if "mode" in options:
        run = Run(tmp_path)
        run.hook.step(mode="nonsense")
    else:
        run = Run(tmp_path, **options)
        run.steps(2)
    run.hook.close()

    assert run.hook.failures >= 1


# faults that are planted, and what is found


def trained(folder: Path, spoil: Callable[[Run], None], steps: int = 60, model: Any = None) -> dict[str, str]:
    run = Run(folder, model, every=2)
    spoil(run)
    run.steps(steps).hook.close()
    return findings(folder)


def nothing(_: Run) -> None:
    """Leave the run as it is."""


def test_a_healthy_training_is_quiet(tmp_path: Path):
    assert trained(tmp_path, nothing) == {}


def test_a_dead_layer_is_found(tmp_path: Path):
    def spoil(run: Run) -> None:
        nn.init.constant_(run.model.fc1.bias, -100.0)

    assert trained(tmp_path, spoil)["DeadRelu"] == "relu1_output_0"


def test_a_saturated_layer_is_found(tmp_path: Path):
    def spoil(run: Run) -> None:
        nn.init.constant_(run.model.more[0].bias, 50.0)

    assert trained(tmp_path, spoil)["SaturatedActivation"] == "more.1.tanh_input_0"


def test_gradients_that_vanish_are_found(tmp_path: Path):
    layers = [layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(8, 3))

    assert trained(tmp_path, nothing, model=model)["VanishingGradient"].startswith("gradient/0.")


def test_a_training_that_explodes_is_found(tmp_path: Path):
    def spoil(run: Run) -> None:
        run.optimizer.param_groups[0]["lr"] = 1e30

    assert "NonFinite" in trained(tmp_path, spoil)


def test_weights_that_do_not_move_are_found(tmp_path: Path):
    def spoil(run: Run) -> None:
        run.optimizer.param_groups[0]["lr"] = 0.0

    assert {"NotLearning", "UnchangedTensor"} & set(trained(tmp_path, spoil))
