"""Tensors of PyTorch as what can be saved: arrays in memory, or reductions that were computed where the tensor is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

REDUCTIONS = ("min", "max", "mean", "variance", "std", "abs_mean", "abs_max", "l2")
"""What is computed of a tensor that is too large to be saved: what the built-in rules use, and what tells a scale."""

SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
"""Types that numpy does not have; each of their values is a float32."""


LEAST_SAMPLES = 16
"""Samples of an activation that are saved at the least; DeadRelu does not judge fewer."""


MOST_COPIED_BY_NUMPY = 2**16
"""Elements that numpy copies in less time than PyTorch takes to begin; ours, PyTorch copies large ones in parallel."""


def dense(tensor: Tensor) -> Tensor | None:
    """What of a tensor lies in the memory of this process, of a type that numpy has; None where nothing does.

    Of a sharded tensor (FSDP) that is this worker's shard, of a sparse gradient the rows that are in it.
    """
    import torch  # noqa: PLC0415 - only the user's script needs it

    plain = type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
    tensor = tensor.detach()
    # nearly all are so, and each question below takes time of the step
    if plain and tensor.is_cpu and tensor.dtype is torch.float32 and tensor.layout is torch.strided:
        return tensor if tensor.numel() else None
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.device.type == "meta" or not tensor.numel():
        return None
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind in SMALL_FLOATS:
        return tensor.float()
    return tensor.to(torch.complex64) if kind == "complex32" else tensor


def first_rows(tensor: Tensor, most: int) -> Tensor:
    """As many of the first samples (along the first axis) as have this many elements together, but not too few to tell.

    That is LEAST_SAMPLES, as long as they have at most 16 times the elements; else it is one.
    """
    if tensor.ndim == 0 or tensor.numel() <= most:
        return tensor
    row = tensor.numel() // len(tensor)
    least = LEAST_SAMPLES if row * LEAST_SAMPLES <= 16 * most else 1
    return tensor[: max(least, most // row)]


def array_of(tensor: Tensor) -> NDArray[Any]:
    """A copy in the memory of the machine, which the training does not change any more."""
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_cpu and tensor.numel() <= MOST_COPIED_BY_NUMPY:
        copied: NDArray[Any] = tensor.numpy().copy()
        return copied
    values: NDArray[Any] = np.asarray(tensor.to("cpu", copy=True).numpy())
    return values


def reduced(tensor: Tensor) -> Tensor:
    """The REDUCTIONS as one vector, still where the tensor is.

    Sums are accumulated in float64 where the device has it, without a copy of the tensor.
    """
    import torch  # noqa: PLC0415 - only the user's script needs it

    if tensor.is_complex():
        tensor = tensor.abs()
    if not tensor.is_floating_point() or tensor.dtype == torch.float16:
        # the square of a half does not fit a half; whole numbers and booleans have no mean of their own type
        tensor = tensor.float() if tensor.dtype in (torch.float16, torch.bool) else tensor.double()
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    least, largest = tensor.aminmax()
    variance = tensor.var(correction=0)
    found = (
        least,
        largest,
        tensor.mean(dtype=wide),
        variance,
        variance.sqrt(),
        torch.linalg.vector_norm(tensor, ord=1, dtype=wide) / tensor.numel(),
        torch.maximum(least.abs(), largest.abs()),
        torch.linalg.vector_norm(tensor, dtype=wide),
    )
    return torch.stack([value.to(wide) for value in found])


def fetched(vectors: Mapping[str, Tensor]) -> dict[str, dict[str, float]]:
    """Name -> reduction -> value, with one transfer from each device."""
    import torch  # noqa: PLC0415 - only the user's script needs it

    by_device: dict[Any, list[str]] = {}
    for name, vector in vectors.items():
        by_device.setdefault(vector.device, []).append(name)
    found = {}
    for names in by_device.values():
        rows = torch.stack([vectors[name] for name in names]).cpu().tolist()
        found.update({name: dict(zip(REDUCTIONS, row, strict=True)) for name, row in zip(names, rows, strict=True)})
    return found
