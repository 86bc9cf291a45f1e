"""The kind of a rejection: its reason without the values that differ from event to event."""

import re

_PLACE = re.compile(r" \(at [^()]*\)$")
_BYTE = re.compile(r" \(byte \d+\)| at byte \d+")
_INDEX = re.compile(r"\[\d+\]")
_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\x22[^\x22]*\x22")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w-])(?<!ISO )\d(?:[\w.,:+-]*\w)?")


def kind_of(reason: str) -> str:
    """Return the reason with its place removed and its values replaced by an ellipsis.

    >>> kind_of("not an OpenLineage event: inputs[3].name: 'a b' has 41,000 characters (at t[0]@7)")
    "not an OpenLineage event: inputs[].name: '…' has … characters"
    >>> kind_of("not UTF-8: invalid start byte at byte 17")
    'not UTF-8: invalid start byte'
    """
    kind = _BYTE.sub("", _PLACE.sub("", reason))
    kind = _QUOTED.sub("'…'", _INDEX.sub("[]", kind))
    return _NUMBER.sub("…", _UUID.sub("…", kind))
