"""One process of a training: python distributed_training.py KIND TRIAL MEETING_FILE, with RANK and WORLD_SIZE set."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch import distributed, nn

from evaluator.hooks.torch import Hook

KIND, TRIAL, MEETING = sys.argv[1:4]
ASK_AT, MOST = 5, 100_000


def wrapped(model: nn.Module) -> Any:
    """The model as this kind of training has it."""
    if KIND == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if KIND == "compiled ddp":
        return torch.compile(nn.parallel.DistributedDataParallel(model), backend="eager")
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415 - only this kind needs it

    fully_shard(model[0])
    fully_shard(model)
    return model


def main() -> None:
    """Train until a file named STOP asks to end, and say after which step."""
    rank = int(os.environ["RANK"])
    distributed.init_process_group(
        "gloo", init_method=f"file://{MEETING}", rank=rank, world_size=int(os.environ["WORLD_SIZE"])
    )
    torch.manual_seed(0)
    model = wrapped(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    hook = Hook(model, TRIAL, every=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(MOST):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        if step == ASK_AT and rank == 1:
            with open(f"{TRIAL}/STOP", "w"):  # noqa: PTH123 - as a shell would
                pass
        if hook.step(loss=loss):
            break
    hook.close()
    sys.stdout.write(f"{step} {hook.failures}")
    distributed.barrier()
    distributed.destroy_process_group()


main()
