"""Names of parameters and layers as the script's author wrote them, whatever wraps the model.

DDP, FSDP, torch.compile and activation checkpointing each put a part into every name: `module.`, `_orig_mod.`, ...
A rule's pattern, and a comparison with another run, should not depend on that.

Source:
    torch.nn.parallel (`module`), torch._dynamo.eval_frame (`_orig_mod`), torch.distributed.fsdp
    (`_fsdp_wrapped_module`, formerly `_fpw_module`), checkpoint_wrapper (`_checkpoint_wrapped_module`),
    torch.nn.parallel of Lightning's Fabric (`_forward_module`); user report 51.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ANYWHERE = ("_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_forward_module")
"""Parts that only wrappers use; some wrap layers inside a model."""

OUTERMOST = "module"
"""The part of DDP and DataParallel, which wrap whole models; authors call layers of their own so, too."""

_WRAPPERS = re.compile(rf"(?:^|(?<=\.))(?:{'|'.join(ANYWHERE)})(?:\.|$)")


def without_wrappers(name: str) -> str:
    """A name without the parts that can only come from wrappers: `_orig_mod.fc.weight` is `fc.weight`."""
    return _WRAPPERS.sub("", name).rstrip(".")


def plain_name(name: str) -> str:
    """A name without all parts of wrappers, where only the one name is known: `module.fc.weight` is `fc.weight`.

    It may hold a prefix, as `gradient/module.fc.weight` does.
    """
    prefix, slash, rest = name.rpartition("/")
    plain = without_wrappers(rest)
    while plain.startswith(f"{OUTERMOST}."):
        plain = plain.removeprefix(f"{OUTERMOST}.")
    return f"{prefix}{slash}{plain}"


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Each name of one model -> its plain name, empty for the model inside of its wrappers; no two become one.

    `module` is taken off only where all names have it, since then it wraps the whole model.
    """
    plain = {name: without_wrappers(name) for name in names}
    while any(plain.values()) and all(map(_is_wrapped, plain.values())):
        plain = {name: inner.partition(".")[2] for name, inner in plain.items()}
    kept = [name for name in plain.values() if name]
    if len(set(kept)) < len(kept):
        return {name: name for name in plain}
    return plain


def _is_wrapped(name: str) -> bool:
    return not name or name == OUTERMOST or name.startswith(f"{OUTERMOST}.")
