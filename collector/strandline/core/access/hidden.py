"""The part of an answer that a key may see if it does not see every namespace.

Hidden things are counted and never named.

The store's own queries are narrowed already (store/sql/narrowed.py). This holds however an answer
is made: an object with a hidden `namespace` leaves its list. The list is then followed by how many
left it. A text loses the hidden names.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from strandline.core.access.granted import Access

NODE = re.compile(r"(?:dataset|job|column|snapshot):(.*)", re.DOTALL)
HIDDEN = "(hidden)"
GONE = object()
INSTEAD = {"hidden": {"access": 1}}  # of one thing
WHOSE = ("job", "source", "target")  # what is hidden of these hides the run, the parent or the edge


class HiddenNames:
    """Names that a key does not see, to be taken out of texts.

    Names that it sees come with them, because these may contain hidden ones.
    """

    def __init__(self, hidden: Iterable[str], names: Iterable[str]) -> None:
        shown = {name for name in names if name}
        self._hidden = {name for name in hidden if name} - shown
        longest_first = (
            sorted(self._hidden | shown, key=lambda name: (-len(name), name))
            if self._hidden
            else []
        )
        self._pattern = _any_of(tuple(longest_first)) if longest_first else None

    def out_of(self, text: str) -> str:
        """Return the text with a word in place of each hidden name."""
        if self._pattern is None:
            return text
        return self._pattern.sub(
            lambda match: HIDDEN if match[0] in self._hidden else match[0], text
        )


def visible(answer: Any, access: Access, names: HiddenNames) -> Any:
    """Return the answer without what the key does not see; `answer` is as JSON has it."""
    shown = _shown(answer, access, names)
    return dict(INSTEAD) if shown is GONE else shown


def _shown(value: Any, access: Access, names: HiddenNames) -> Any:
    match value:
        case dict():
            return _object(value, access, names)
        case list():
            return [
                element
                for element in (_shown(item, access, names) for item in value)
                if element is not GONE
            ]
        case str():
            node = NODE.fullmatch(value)
            return GONE if node and not access.allows_text(node[1]) else names.out_of(value)
    return value


def _object(value: dict[str, Any], access: Access, names: HiddenNames) -> Any:
    namespace = value.get("namespace")
    if isinstance(namespace, str) and not access.allows(namespace):
        return GONE
    if any(_shown(value.get(key), access, names) is GONE for key in WHOSE):
        return GONE
    members: dict[str, Any] = {}
    left_out = 0
    for key, member in value.items():
        node = NODE.fullmatch(key)
        if node and not access.allows_text(node[1]):
            left_out += 1
            continue
        shown = _shown(member, access, names)
        if isinstance(member, list):
            left_out += len(member) - len(shown)
        members[names.out_of(key)] = dict(INSTEAD) if shown is GONE else shown
    return (
        members | {"hidden": _more_hidden(members.get("hidden"), left_out)} if left_out else members
    )


def _more_hidden(counted: Any, more: int) -> dict[str, Any]:
    """Return the counts of what is left out, with so many more for want of access."""
    counts = counted if isinstance(counted, dict) else {}
    before = counts.get("access", 0)
    return counts | {"access": more + (before if isinstance(before, int) else 0)}


@lru_cache(maxsize=4)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
