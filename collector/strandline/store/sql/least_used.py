"""A mapping that holds so many bytes and no more: what was not asked for longest goes first."""

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LeastUsed(Generic[Value]):
    """Values by a number, each of a size that whoever puts it there states.

    >>> held = LeastUsed(10)
    >>> held.put(1, "a", 6), held.put(2, "b", 6), held.get(1), held.get(2), held.size
    ('a', 'b', None, 'b', 6)
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: OrderedDict[int, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def get(self, key: int) -> Value | None:
        """The value, or None."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: int, value: Value, size: int) -> Value:
        """Hold a value, and give it back; one that is larger than the whole is not held."""
        self.remove(key)
        if size > self._capacity:
            return value
        self._held[key] = (value, size)
        self.size += size
        while self.size > self._capacity:
            self.size -= self._held.popitem(last=False)[1][1]
        return value

    def remove(self, key: int) -> None:
        """Hold it no longer."""
        if (found := self._held.pop(key, None)) is not None:
            self.size -= found[1]

    def clear(self) -> None:
        """Hold nothing."""
        self._held.clear()
        self.size = 0
