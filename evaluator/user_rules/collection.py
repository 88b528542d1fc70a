"""Named sets of tensors, as rule files read and extend them.

Source:
    smdebug-api.md, section 8; texts compared with smdebug 1.0.34 by `make conformance`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evaluator.storage import open_store
from evaluator.user_rules.configs import ReductionConfig, SaveConfig
from evaluator.user_rules.core_utils import flatten
from evaluator.user_rules.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError


class CollectionKeys:
    """The names of the collections that hooks make."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


class Collection:
    """Tensors by name and by patterns that are searched in names."""

    def __init__(
        self,
        name: str,
        include_regex: Iterable[str] | None = None,
        tensor_names: Iterable[str] | None = None,
        reduction_config: ReductionConfig | dict[str, Any] | None = None,
        save_config: SaveConfig | dict[Any, Any] | None = None,
        save_histogram: bool = True,
    ) -> None:
        """All but the name can be added later."""
        self.name = name
        self.include_regex = list(include_regex or [])
        self.tensor_names = tensor_names
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    @property
    def tensor_names(self) -> set[str]:
        """The names, as a set that may be changed."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str] | None) -> None:
        if names is not None and not isinstance(names, list | set | tuple):
            raise SMDebugTypeError("tensor_names can only be list or set")
        self._tensor_names = set(names or ())

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """Which reductions are saved; None for the hook's own choice."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, config: ReductionConfig | dict[str, Any] | None) -> None:
        self._reduction_config = ReductionConfig.from_dict(config) if isinstance(config, dict) else config

    @property
    def save_config(self) -> SaveConfig | None:
        """At which steps it is saved; None for the hook's own choice."""
        return self._save_config

    @save_config.setter
    def save_config(self, config: SaveConfig | dict[Any, Any] | None) -> None:
        self._save_config = SaveConfig.parse(config) if isinstance(config, dict) else config

    def include(self, t: str | Iterable[Any]) -> None:
        """Add a pattern, or a list of patterns or lists."""
        if not isinstance(t, str | list):
            raise SMDebugTypeError("Can only include str or list")
        self.include_regex.extend([t] if isinstance(t, str) else flatten(t))

    def has_tensor_name(self, tname: str) -> bool:
        """Whether the name is among the names."""
        return tname in self._tensor_names

    def add_tensor_name(self, tname: str) -> None:
        """Add a name."""
        self._tensor_names.add(tname)

    def remove_tensor_name(self, tname: str) -> None:
        """Take a name out, if it is there."""
        self._tensor_names.discard(tname)

    def to_json_dict(self) -> dict[str, Any]:
        """As it stands in a collections file."""
        return {
            "name": self.name,
            "include_regex": self.include_regex,
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": self._reduction_config and self._reduction_config.to_json_dict(),
            "save_config": self._save_config and self._save_config.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Collection:
        """From the form of a collections file; other keys are ignored."""
        if not isinstance(params, Mapping):
            raise SMDebugTypeError(f"a collection cannot be made from {type(params).__name__}")
        return cls(
            params.get("name"),  # type: ignore[arg-type]  # a file may lack it
            params.get("include_regex") or None,
            params.get("tensor_names") or None,
            params.get("reduction_config"),
            params.get("save_config"),
            params.get("save_histogram", True),
        )

    @classmethod
    def from_json(cls, json_str: str) -> Collection:
        """From text."""
        return cls.from_dict(json.loads(json_str))

    def __str__(self) -> str:
        """All that is in it."""
        return str(self.to_json_dict())

    def __hash__(self) -> int:
        """By the name, which stays."""
        return hash(self.name)

    def __repr__(self) -> str:
        """The name."""
        return f"<class Collection: name={self.name}>"

    def __eq__(self, other: object) -> bool:
        """Whether everything is the same."""
        return isinstance(other, Collection) and self.to_json_dict() == other.to_json_dict()


class CollectionManager:
    """The collections of a run, by name, and how many workers save."""

    def __init__(self, collections: dict[str, Collection] | None = None, create_default: bool = False) -> None:
        """Start with those given; `create_default` adds none, as in the reference."""
        del create_default
        self.collections = {} if collections is None else collections
        self._meta: dict[str, Any] = {"num_workers": 1}

    def create_collection(self, name: str, cls: type[Collection] = Collection) -> None:
        """Put an empty one there."""
        self.collections[name] = cls(name)

    def get_collections(self) -> dict[str, Collection]:
        """All of them."""
        return self.collections

    def add(self, arg: str | Collection) -> None:
        """Add one, or an empty one of that name."""
        if isinstance(arg, str):
            self.create_collection(arg)
        elif isinstance(arg, Collection):
            self.collections[arg.name] = arg
        else:
            raise SMDebugTypeError(f"a collection or its name can be added, not {type(arg).__name__}")

    def get(self, name: str, create: bool = True) -> Collection:
        """The one of that name; an empty one is made where there is none."""
        if name not in self.collections:
            if not create:
                raise SMDebugError(f"Collection {name} has not been created")
            self.create_collection(name)
        return self.collections[name]

    def update_meta(self, meta: Mapping[str, Any]) -> None:
        """Take over what a file says beside the collections."""
        self._meta.update(meta)

    def get_num_workers(self) -> int:
        """How many workers save."""
        return int(self._meta["num_workers"])

    def set_num_workers(self, num_workers: int) -> None:
        """Say how many workers save."""
        self._meta["num_workers"] = num_workers

    def to_json_dict(self) -> dict[str, Any]:
        """As a collections file holds it."""
        saved = {name: collection.to_json_dict() for name, collection in self.collections.items()}
        return {"collections": saved, "_meta": self._meta}

    def export(self, out_dir: str, filename: str) -> None:
        """Write a collections file below a trial's folder."""
        data = json.dumps(self.to_json_dict()).encode()
        open_store(out_dir).write(f"collections/000000000/{filename}", data)

    @classmethod
    def load(cls, filename: str, collection_class: type[Collection] = Collection) -> CollectionManager:
        """From a file."""
        folder, _, name = filename.rpartition("/")
        return cls.load_from_string(open_store(folder or ".").read(name).decode(), collection_class)

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] = Collection) -> CollectionManager:
        """From the text of a file."""
        content = json.loads(s)
        if not isinstance(content, dict) or not set(content) <= {"collections", "_meta"}:
            raise SMDebugValueError("allowed params for collection manager can only be one of collections,_meta")
        made = (collection_class.from_dict(saved) for saved in content.get("collections", {}).values())
        manager = cls({collection.name: collection for collection in made})
        manager.update_meta(content.get("_meta") or {})
        return manager

    def __eq__(self, other: object) -> bool:
        """Whether everything is the same."""
        return isinstance(other, CollectionManager) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        """The names."""
        return f"<class CollectionManager: collection_names={list(self.collections)}>"
