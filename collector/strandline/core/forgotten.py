"""A document without what is to be forgotten.

Names go from their places, and texts say `[forgotten]` in place of them.

What else a document says stays byte for byte. An event whose own job, run or dataset is to be
forgotten goes as a whole. One that names it beside others stays without it, and so does a facet: no
list, edge, parent or symlink keeps it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

GONE = "[forgotten]"
# Members that are no prose: what they say is the protocol's.
_PROTOCOL = frozenset(
    ("producer", "schemaURL", "_producer", "_schemaURL", "eventTime", "eventType")
)
_WHOLE = ("run", "job", "dataset")
_RUN_OF_JOB = {"run", "job"}
# In words as well: `checkpoint_<uuid>`, `dag%3A<uuid>`. Nothing else has 122 equal bits by chance.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_QUOTE = r"[`\"\]]?"
_OPEN = r"[`\"\[]?"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT, _LIST, _STRING = b"{", b"[", b'"'


class Place(NamedTuple):
    """The place of a value: its member, and whether that is prose, in which names are replaced."""

    key: str
    prose: bool = True


class Texts:
    """The names to forget as texts have them.

    Whole words, in any case, quoted part by part as SQL does, or percent-encoded.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        dotted: bool,
        members: Iterable[str] = (),
        runs: Collection[str] = (),
    ) -> None:
        """Take the names, the names of what is in a namespace, and the UUIDs of runs.

        `dotted`: a name before or after a dot is another's, as jobs are called after each other; a
        dot that ends a sentence is none.
        """
        self._runs = runs
        edges = (r"[\w.-]", r"[\w-]|\.\S") if dotted else (r"[\w-]", r"[\w-]")
        patterns = [
            rf"(?<!{before}){_pattern_of(spellings)}(?!{after})"
            for before, after, spellings in (
                (r"[\w-]", r"[\w-]", _spellings(members)),
                (*edges, _spellings(names)),
            )
            if spellings
        ]
        self._pattern = re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)

    def without(self, text: str) -> str:
        """Return the text without them.

        >>> sql = 'INSERT INTO lake.`shop`.`totals` SELECT 1 -- not shop.totals2'
        >>> Texts(["shop.totals"], dotted=False).without(sql)
        'INSERT INTO lake.[forgotten] SELECT 1 -- not shop.totals2'
        """
        text = self._pattern.sub(GONE, text)
        return _UUID.sub(lambda run: GONE if run[0].lower() in self._runs else run[0], text)

    def words_in(self, text: str) -> list[str]:
        """Return the names as they are there."""
        return [match[0] for match in self._pattern.finditer(text)]

    def are_in(self, text: str) -> bool:
        """Return whether one of them is there."""
        return self._pattern.search(text) is not None or self.has_run(text)

    def has_run(self, text: str) -> bool:
        """Return whether the UUID of a run is there, which is nobody else's."""
        return bool(self._runs) and any(run.lower() in self._runs for run in _UUID.findall(text))


def _spellings(names: Iterable[str]) -> list[list[str]]:
    """Return the pieces of patterns for all spellings of names; a longer name comes first."""
    ordered = sorted(filter(None, set(names)), key=len, reverse=True)
    spellings = [spelling for name in ordered for spelling in _other_spellings(name)]
    return spellings + [_quoted(name) for name in ordered]


def _quoted(name: str) -> list[str]:
    """Return the pieces of a pattern for a name as SQL quotes it, part by part."""
    if "." not in name:
        return list(map(re.escape, name))
    pieces = [_OPEN]
    for part in name.split("."):
        if len(pieces) > 1:
            pieces.append(rf"{_QUOTE}\.{_OPEN}")
        pieces += map(re.escape, part)
    return [*pieces, _QUOTE]


def _other_spellings(name: str) -> list[list[str]]:
    """Return the pieces of patterns for a name as addresses and JSON spell it."""
    spellings = {
        quote(name, safe=""),
        quote(name),
        json.dumps(name)[1:-1],
        json.dumps(name, ensure_ascii=False)[1:-1],
    }
    return [list(map(re.escape, spelling)) for spelling in sorted(spellings - {name})]


_Tree = dict[str, Any]
_SHARED = 100  # pieces of a spelling that others may share; each is a level of the pattern


def _pattern_of(spellings: Iterable[list[str]]) -> str:
    """Return a pattern of any of the spellings, the longest first.

    Beginnings that several share are tried once, so a namespace may have thousands of names.
    """
    tree: _Tree = {}
    for pieces in spellings:
        branch = tree
        rest = "".join(pieces[_SHARED:])
        for piece in [*pieces[:_SHARED], rest] if rest else pieces:
            branch = branch.setdefault(piece, {})
        branch[""] = {}
    return _alternatives(tree)


def _alternatives(tree: _Tree) -> str:
    """Return the pattern of a tree of pieces; an empty piece is an end."""
    pieces = []
    while len(tree) == 1 and "" not in tree:
        ((piece, tree),) = tree.items()
        pieces.append(piece)
    branches = [piece + _alternatives(branch) for piece, branch in tree.items() if piece]
    if branches:
        is_optional = "?" if "" in tree else ""
        pieces.append(f"(?:{'|'.join(branches)}){is_optional}")
    return "".join(pieces)


class NamesToForget(NamedTuple):
    """The names to forget as documents have them, each a test of names as received."""

    is_job: Callable[[str, str], bool]
    is_dataset: Callable[[str, str], bool]
    is_run: Callable[[str, str, str], bool]  # run id, and the job's namespace and name
    texts: Texts
    may_be_in: Callable[[bytes], bool]  # a quick look at bytes: False is a promise


def left_of(event: bytes, naming: NamesToForget, *, prose: bool) -> bytes | None:
    """Return the rest of an event.

    The same bytes where nothing is to be forgotten, None where nothing may stay.

    Without `prose` only names in their places count.
    """
    remaining = _left(event, Place("", prose), naming)
    if remaining is None or remaining is event:
        return remaining
    before, after = _MEMBERS.decode(event), _MEMBERS.decode(remaining)
    return None if any(member in before and member not in after for member in _WHOLE) else remaining


def _left(raw: bytes, place: Place, naming: NamesToForget) -> bytes | None:
    first = raw[:1]
    if first not in (_OBJECT, _LIST, _STRING) or not naming.may_be_in(raw):
        return raw
    if first == _OBJECT:
        return _left_of_object(raw, place, naming)
    if first == _LIST:
        return _left_of_list(raw, place, naming)
    return _left_of_text(raw, naming) if place.prose else raw


def _left_of_text(raw: bytes, naming: NamesToForget) -> bytes:
    text: str = msgspec.json.decode(raw)
    remaining = naming.texts.without(text)
    return raw if remaining == text else msgspec.json.encode(remaining)


def _left_of_list(raw: bytes, place: Place, naming: NamesToForget) -> bytes:
    elements = [bytes(element) for element in _ELEMENTS.decode(raw)]
    remaining = [_left(element, place, naming) for element in elements]
    if all(element is other for element, other in zip(elements, remaining, strict=True)):
        return raw
    return b"[" + b", ".join(element for element in remaining if element is not None) + b"]"


def _left_of_object(raw: bytes, place: Place, naming: NamesToForget) -> bytes | None:
    members = {key: bytes(value) for key, value in _MEMBERS.decode(raw).items()}
    name = _text(members.get("namespace")), _text(members.get("name"))
    is_named = None not in name
    if is_named and _is_wanted(str(name[0]), str(name[1]), members, place, naming):
        return None
    if _is_wanted_run(members, naming):
        return None
    remaining, changed = _left_of_members(members, place, naming, is_named=is_named)
    if members.keys() >= _RUN_OF_JOB and not remaining.keys() >= _RUN_OF_JOB:
        return None  # a parent without its job, an event without its run
    return _encoded(remaining) if changed else raw


def _left_of_members(
    members: dict[str, bytes], place: Place, naming: NamesToForget, *, is_named: bool
) -> tuple[dict[str, bytes], bool]:
    """Return the members of an object that may stay, and whether any of them is another now."""
    remaining: dict[str, bytes] = {}
    changed = False
    for key, value in members.items():
        prose = (
            place.prose and key not in _PROTOCOL and not (is_named and key in ("namespace", "name"))
        )
        left = _left(value, Place(key, prose), naming)
        left_key = naming.texts.without(key) if place.prose else key
        changed = changed or left is not value or left_key != key
        if left is not None:
            remaining[left_key] = left
    return remaining, changed


def _encoded(members: dict[str, bytes]) -> bytes:
    return (
        b"{"
        + b", ".join(msgspec.json.encode(key) + b": " + value for key, value in members.items())
        + b"}"
    )


def _is_wanted(
    namespace: str, name: str, members: dict[str, bytes], place: Place, naming: NamesToForget
) -> bool:
    is_job = place.key == "job" or _text(members.get("type")) == "JOB"
    return naming.is_job(namespace, name) if is_job else naming.is_dataset(namespace, name)


def _is_wanted_run(members: dict[str, bytes], naming: NamesToForget) -> bool:
    """Return whether the members are a run and its job, and the run is to be forgotten."""
    if not members.keys() >= _RUN_OF_JOB:
        return False
    try:
        run, job = (
            msgspec.json.decode(members[member], type=dict[str, msgspec.Raw])
            for member in ("run", "job")
        )
    except msgspec.MsgspecError:
        return False
    identity = [
        _text(bytes(owner[key])) if key in owner else None
        for owner, key in ((run, "runId"), (job, "namespace"), (job, "name"))
    ]
    return None not in identity and naming.is_run(*map(str, identity))


def _text(raw: bytes | None) -> str | None:
    """Return the string that is written there, if it is one."""
    if raw is None or raw[:1] != _STRING:
        return None
    text: str = msgspec.json.decode(raw)
    return text
