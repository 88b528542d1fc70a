"""Objects in a dictionary: for tests, examples and rule authors."""

from __future__ import annotations

from weakref import WeakValueDictionary

from evaluator.clock import Clock, SystemClock
from evaluator.errors import KeyMissing
from evaluator.storage.base import Entry, Store, check_key, is_unfinished

_open: WeakValueDictionary[str, MemoryStore] = WeakValueDictionary()
"""The stores opened by URI, so that the same URI finds the same objects for as long as somebody holds them."""


def open_store(uri: str, clock: Clock | None = None) -> MemoryStore:
    """The living store of that URI, or a new empty one."""
    store = _open.get(uri)
    if store is None:
        store = _open[uri] = MemoryStore(uri, clock)
    return store


class MemoryStore(Store):
    """A store that ends with the process; `clock` gives the modification times."""

    def __init__(self, uri: str = "memory://", clock: Clock | None = None) -> None:
        """Start empty."""
        super().__init__(uri)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._objects: dict[str, tuple[bytes, float]] = {}

    def below(self, folder: str) -> MemoryStore:
        """The objects of a folder as they are now."""
        start = f"{check_key(folder)}/"
        below = MemoryStore(f"{self.uri.rstrip('/')}/{folder}", self._clock)
        found = {key: one for key, one in self._objects.copy().items() if key.startswith(start)}
        below._objects = {key.removeprefix(start): one for key, one in found.items()}
        return below

    def folders(self, prefix: str = "") -> list[str]:
        """What stands between `prefix` and the next "/" of a key."""
        self.requests.list += 1
        start = f"{check_key(prefix).rstrip('/')}/".lstrip("/")
        below = (key.removeprefix(start) for key in self._objects.copy() if key.startswith(start))
        return sorted({name.partition("/")[0] for name in below if "/" in name})

    def unfinished(self) -> list[str]:
        """All keys with such names."""
        self.requests.list += 1
        return sorted(filter(is_unfinished, self._objects.copy()))

    def stat(self, key: str) -> Entry | None:
        """Size and time of one object."""
        self.requests.get += 1
        found = self._objects.get(check_key(key))
        return None if found is None or is_unfinished(key) else Entry(key, len(found[0]), found[1])

    def read(self, key: str) -> bytes:
        """The whole object."""
        self.requests.get += 1
        return self._held(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object."""
        if start < 0 or length < 0:
            raise ValueError(f"a range starts at 0 or later and is not negative; got start {start}, length {length}")
        self.requests.get += 1
        return self._held(key)[start : start + length]

    def write(self, key: str, data: bytes) -> None:
        """Replace the object."""
        self.requests.put += 1
        self._objects[check_key(key)] = (bytes(data), self._clock.now())

    def append(self, key: str, data: bytes) -> None:
        """Add to the end of the object."""
        self.requests.put += 1
        before, _ = self._objects.get(check_key(key), (b"", 0.0))
        self._objects[key] = (before + data, self._clock.now())

    def delete(self, key: str) -> None:
        """Forget the object."""
        self._objects.pop(check_key(key), None)

    # after every method whose annotations mean the builtin
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """All keys that match, from a copy, so that another thread may write meanwhile."""
        self.requests.list += 1
        check_key(prefix)
        return [
            Entry(key, len(data), modified)
            for key, (data, modified) in sorted(self._objects.copy().items())
            if key.startswith(prefix) and key > start_after and not is_unfinished(key)
        ]

    def _held(self, key: str) -> bytes:
        found = self._objects.get(check_key(key))
        if found is None:
            raise KeyMissing(f"{self.uri.rstrip('/')}/{key}", "nothing is stored there")
        return found[0]
