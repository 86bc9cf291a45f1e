"""The wire model: one OpenLineage event as it came, its facets still bytes.

`decode` is the only parser of events.

Strict where the core schema of OpenLineage 2-0-2 is: required fields, types and the six event
types. Everything else passes: unknown fields, duplicate keys, run ids that are not UUIDs, and a
missing schemaURL, which some producers leave out.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Raw

from strandline.core.openlineage.names import is_delta_log
from strandline.core.openlineage.times import micros
from strandline.errors import InvalidEventError, NotJsonError, TooLargeError

EventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"]
RawFacets = dict[str, Raw]  # facets by their keys, each an object, unread
NO_FACETS = Raw(b"")
# of an array of events: each costs memory and an entry of the answer, however small it is
MOST_ELEMENTS = 10_000
WHITE_SPACE = b" \t\r\n"  # JSON's
MOST_LOOKS = 1_000_000  # at brackets, of an array that is no JSON: within a second
MOST_LOOKED_AT = 10_000_000  # bytes, some milliseconds


class Job(msgspec.Struct, frozen=True, gc=False):
    """The job of an event."""

    namespace: str
    name: str
    facets: Raw = NO_FACETS  # an object, unread


class Run(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The run of an event."""

    run_id: str
    facets: RawFacets | None = None


class Dataset(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One input or output, or the dataset of a DatasetEvent."""

    namespace: str
    name: str
    facets: Raw = NO_FACETS  # an object, unread
    input_facets: RawFacets | None = None
    output_facets: RawFacets | None = None


class Event(msgspec.Struct, frozen=True, gc=False, rename={"schema_url": "schemaURL"} | {
    "event_time": "eventTime", "event_type": "eventType"}):  # fmt: skip
    """A RunEvent (run and job), a JobEvent (job alone) or a DatasetEvent (dataset alone)."""

    event_time: str
    producer: str
    schema_url: str | None = None
    event_type: EventType | None = None
    run: Run | None = None
    job: Job | None = None
    dataset: Dataset | None = None
    inputs: list[Dataset] | None = None
    outputs: list[Dataset] | None = None

    @property
    def at(self) -> int:
        """The event's time in microseconds; `decode` has seen to it that there is one."""
        return micros(self.event_time) or 0


_DECODER = msgspec.json.Decoder(Event)
_ARRAY = msgspec.json.Decoder(Annotated[list[Raw], msgspec.Meta(max_length=MOST_ELEMENTS)])
_STRINGS = rb'(?:"(?:[^"\\]++|\\.)*+"?+|[^"\[\]{}%s]++)*+'
_SHALLOW = re.compile(_STRINGS % b"," + rb"(,|[\[{]|[\]}])", re.DOTALL)  # between the elements
_DEEP = re.compile(_STRINGS % b"" + rb"([\[{]++|[\]}]++)", re.DOTALL)  # inside of one
_NO_NUMBER = re.compile(rb'("(?:[^"\\]++|\\.)*+"?)|-?\b(?:NaN|Infinity)\b', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_FIELD = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(\w+)`")


class Decoded(NamedTuple):
    """An event, and the bytes that it was read from.

    The bytes are as they came, but trimmed, unless they had to be repaired.
    """

    event: Event
    value: bytes


def decode(value: bytes) -> Event:
    """Return the event in these bytes; raise InvalidEventError with the path to the fault.

    Lone surrogates (half a character, as careless producers escape it) and numbers that JSON has
    not (as Python writes them) are no reason to refuse: see `decoded`.

    >>> decode(b'{"eventTime": "2026-01-01T00:00:00Z"}')
    Traceback (most recent call last):
    strandline.errors.InvalidEventError: not an OpenLineage event: producer: Field required
    """
    return decoded(value).event


def trimmed(value: bytes) -> bytes:
    r"""Return the bytes without what senders put around an event.

    A newline at its end, a byte order mark before it.

    >>> trimmed(b'\xef\xbb\xbf{"eventTime": 1}\r\n')
    b'{"eventTime": 1}'
    """
    return value.removeprefix(BOM_UTF8).strip(WHITE_SPACE)


def decoded(value: bytes) -> Decoded:
    r"""Return the event in these bytes, and the bytes as they can be stored.

    Lone surrogates (\ud800 without its other half), which no database can hold, are replaced. NaN
    and Infinity, which openlineage-python writes for a metric that has no value, are null.
    """
    value = trimmed(value)
    try:
        if not value.isascii():
            value.decode()  # what stays unread has to be text as well
        read = _decoded(_whole_characters(value))
    except msgspec.ValidationError as error:
        _check_json(value)
        raise _invalid(error) from None
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except msgspec.DecodeError as error:
        raise NotJsonError(_place_of(error, value)) from None
    except RecursionError:
        raise InvalidEventError("nested too deeply") from None
    _check(read.event)
    return read


def _check_json(value: bytes) -> None:
    """Raise a NotJsonError if the body is not JSON, even only behind the event's first fault."""
    plain = _NO_NUMBER.sub(lambda match: match[1] or b"null", value)
    try:
        msgspec.json.decode(plain, type=Raw)
    except RecursionError:
        return
    except msgspec.DecodeError as error:
        raise NotJsonError(_place_of(error, plain)) from None


def _place_of(error: msgspec.DecodeError, value: bytes) -> str:
    """Return the fault and its place: msgspec names the byte, unless that is the end."""
    return str(error) if "byte " in str(error) else f"{error} (byte {len(value)})"


def _decoded(value: bytes) -> Decoded:
    try:
        return Decoded(_DECODER.decode(value), value)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:  # looking for NaN in every event would take longer than reading it
        with_null = _NO_NUMBER.sub(lambda match: match[1] or b"null", value)
        return Decoded(_DECODER.decode(with_null), with_null)


def _whole_characters(value: bytes) -> bytes:
    if b"\\" not in value or not _SURROGATE.search(value):
        return value
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match[2] else match[0], value)


def elements(body: bytes) -> list[bytes]:
    """Return the elements of a JSON array, unread.

    One that is no JSON, or nested too deeply, does not hide the others.

    Raises ValueError where the array itself does not begin or end, and TooLargeError for more than
    MOST_ELEMENTS.

    >>> elements(b'[{"a": [1, NaN]}, {]')
    Traceback (most recent call last):
    ValueError: the array does not end
    """
    body = trimmed(body)
    try:
        return [bytes(element) for element in _ARRAY.decode(body)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        array = list(islice(_cut(body), MOST_ELEMENTS + 1))
        if len(array) > MOST_ELEMENTS:
            raise TooLargeError(f"the array has more than {MOST_ELEMENTS} events") from None
        return array


def _cut(text: bytes) -> Iterator[bytes]:
    if text[:1] != b"[":
        raise ValueError("it does not begin with [")
    start = end = depth = 1
    for _ in range(MOST_LOOKS):
        match = (_SHALLOW if depth == 1 else _DEEP).match(text, end)
        if match is None:
            raise ValueError("the array does not end")
        sign, end = match[1], match.end()
        if sign == b",":
            yield text[start : end - 1].strip()
            start = end
        elif sign[:1] in b"[{":
            depth += len(sign)
        elif (depth := depth - len(sign)) < 1:
            if depth < 0 or end < len(text) or sign[-1:] != b"]":
                raise ValueError(f"the array ends before byte {end}, the body does not")
            yield text[start : end - 1].strip()
            return
    raise ValueError("not JSON, and with too many brackets")


def unread(event: Event, value: bytes) -> bytes:
    """Return the event's bytes with `{}` for every facet that is read.

    What else is in them, nobody has looked at.
    """
    return emptied(value, [bytes(raw) for raw in _facets_read(event)])


def emptied(value: bytes, objects: Sequence[bytes]) -> bytes:
    """Return these bytes with `{}` for each of the JSON objects in them, mostly in this order."""
    rest, end = [], 0
    for text in objects:
        if text[:1] != b"{":
            continue
        start = value.find(text[:64], end)  # looking for all of it would take ten times as long
        if start < 0 or not value.startswith(text, start):
            return _emptied_in_any_order(value, objects)
        rest.append(value[end:start])
        end = start + len(text)
    return b"{}".join([*rest, value[end:]])


def _emptied_in_any_order(value: bytes, objects: Sequence[bytes]) -> bytes:
    """Return the same at the price of going over the bytes once for each object.

    Where that is too much, they stay.
    """
    if len(objects) * len(value) > MOST_LOOKED_AT:
        return value
    for text in objects:
        if text[:1] == b"{":
            value = value.replace(text, b"{}", 1)
    return value


def _facets_read(event: Event) -> Iterator[Raw]:
    """Yield what is read of the event, in the order in which most producers write it."""
    if event.job is None:
        yield from () if event.dataset is None else (event.dataset.facets,)
        return
    if event.run is not None and event.run.facets:
        yield from event.run.facets.values()
    yield event.job.facets
    for dataset in event.inputs or ():
        yield from _of_dataset(dataset, dataset.input_facets)
    for dataset in event.outputs or ():
        yield from _of_dataset(dataset, dataset.output_facets)


def _of_dataset(dataset: Dataset, own: RawFacets | None) -> Iterator[Raw]:
    yield dataset.facets
    if own and not is_delta_log(dataset.name):
        yield from own.values()


def _check(event: Event) -> None:
    if event.run is not None and event.job is None:
        raise InvalidEventError("Field required", "job")
    if event.run is None and event.job is None and event.dataset is None:
        raise InvalidEventError("Field required: a run and a job, a job, or a dataset", "run")
    if event.run is not None and not event.run.run_id:
        raise InvalidEventError("empty", "run.runId")
    if micros(event.event_time) is None:
        raise InvalidEventError(f"not an ISO 8601 time: {event.event_time[:60]!r}", "eventTime")
    _check_facets(event)


def _check_facets(event: Event) -> None:
    """Raise an InvalidEventError for facets that are no object; each is read later."""
    if event.job is not None:
        _check_object(event.job.facets, "job")
    if event.dataset is not None:
        _check_object(event.dataset.facets, "dataset")
    for name, datasets in (("inputs", event.inputs), ("outputs", event.outputs)):
        for index, dataset in enumerate(datasets or ()):
            if memoryview(dataset.facets)[:1] not in _OBJECT:
                raise InvalidEventError("Expected `object`", f"{name}[{index}].facets")


def _check_object(facets: Raw, path: str) -> None:
    if memoryview(facets)[:1] not in _OBJECT:
        raise InvalidEventError("Expected `object`", f"{path}.facets")


_OBJECT = (b"{", b"", b"n")  # or absent, or null


def _invalid(error: msgspec.ValidationError) -> InvalidEventError:
    field = _FIELD.match(str(error))
    what, path = (field["what"], field["path"] or "") if field else (str(error), "")
    missing = _MISSING.match(what)
    if missing:
        return InvalidEventError("Field required", f"{path}.{missing[1]}".lstrip("."))
    return InvalidEventError(what, path.lstrip("."))
