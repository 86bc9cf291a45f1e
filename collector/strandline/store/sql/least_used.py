"""A mapping of bounded size from which the least recently used values go first."""

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LeastUsed(Generic[Value]):
    """Values by a number; the caller states the size of each.

    >>> held = LeastUsed(10)
    >>> held.put(1, "a", 6), held.put(2, "b", 6), held.get(1), held.get(2), held.size
    ('a', 'b', None, 'b', 6)
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[int, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def get(self, key: int) -> Value | None:
        """Return the value, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: int, value: Value, size: int) -> Value:
        """Store a value and return it; one that is larger than the whole is not stored."""
        self.remove(key)
        if size > self._capacity:
            return value
        self._entries[key] = (value, size)
        self.size += size
        while self.size > self._capacity:
            self.size -= self._entries.popitem(last=False)[1][1]
        return value

    def remove(self, key: int) -> None:
        """Remove a value if it is there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]

    def clear(self) -> None:
        """Remove all values."""
        self._entries.clear()
        self.size = 0
