"""Entries of the graph as bytes, which take a fraction of the memory.

For those that nobody has asked for lately.

What can be computed again from the rest is left out. Names and JSON are short and much alike, so
the bytes are compressed with a dictionary of what nearly all of them have.
"""

import zlib
from typing import Any

import msgspec
import orjson

from strandline.store.graph.entries import DatasetEntry, EdgeText, GraphStep, JobEntry, NodeLabel
from strandline.store.lineage.run_state import RunState

COMMON = (
    b'"startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:00.000000Z""id":"job:","type":"job","namespace":"","name":"'
    b',"catalog":null,"database":null,"table":null"id":"dataset:s3://file:","type":"dataset","namespace":"","name":"'
    b',"rule":"columnLineage","runId":"00000000-0000-0000-0000-000000000000","state":"RUNNING","running":true'
    b',"rule":"allSources","runId":"00000000-0000-0000-0000-000000000000","state":"COMPLETE","running":false'
    b',"since":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:00Z","lastSeen":"2026-01-01T00:00:00Z","runs":1,"ofRuns":1,"inLatest":true'
)
WINDOW = -13  # no head and no check sum; 8 KiB
LEVEL, MEMORY = 1, 5  # of zlib: what takes least time


class _PackedLabel(msgspec.Struct, array_like=True):
    before: bytes
    after: bytes


class _PackedDataset(msgspec.Struct, array_like=True):
    label: _PackedLabel | None
    names: tuple[int, ...]
    readers: list[int]
    writers: list[int]
    has_lifecycle: bool


class _PackedStep(msgspec.Struct, array_like=True):
    """Each number is a place in the ids or texts of the job."""

    source: int
    target: int
    read: int
    written: int
    newest: int


class _PackedText(msgspec.Struct, array_like=True):
    json: bytes
    basis: bytes


class _PackedRun(msgspec.Struct, array_like=True):
    id: int
    run_id: str
    state: str
    since: int | None
    until: int | None
    streaming: bool
    outcome: bytes


class _PackedJob(msgspec.Struct, array_like=True):
    label: _PackedLabel | None
    also: tuple[int, ...]
    names: tuple[int, ...]
    ids: list[int | None]
    texts: list[_PackedText]
    steps: list[_PackedStep]
    runs: list[_PackedRun]
    reported: tuple[tuple[int, int, int], ...]
    unstepped: frozenset[tuple[int, int]]
    only_stated: frozenset[tuple[int, int]]
    depends_on: tuple[int, ...]
    since: int
    until: int
    has_relations: bool
    has_nested: bool
    is_open: bool


_encode = msgspec.msgpack.Encoder().encode
_DATASET = msgspec.msgpack.Decoder(_PackedDataset)
_JOB = msgspec.msgpack.Decoder(_PackedJob)


def packed_dataset(entry: DatasetEntry) -> bytes:
    """A dataset's entry as bytes."""
    readers, writers = map(list, entry.touching)
    return _compressed(
        _PackedDataset(
            _packed_label(entry.label), entry.names, readers, writers, entry.has_lifecycle
        )
    )


def unpacked_dataset(_id: int, body: bytes) -> DatasetEntry:
    """The entry that these bytes are."""
    one = _DATASET.decode(_expanded(body))
    touching = dict.fromkeys(one.readers), dict.fromkeys(one.writers)
    return DatasetEntry(_unpacked_label(one.label), one.names, touching, one.has_lifecycle)


def packed_job(entry: JobEntry) -> bytes:
    """A job's entry as bytes."""
    ids, texts = _Places(), _Places()
    steps = [
        _PackedStep(
            ids.of(one.source),
            ids.of(one.target),
            texts.of(one.read),
            texts.of(one.written),
            ids.of(one.newest),
        )
        for one in entry.steps
    ]
    return _compressed(
        _PackedJob(
            _packed_label(entry.label),
            entry.also,
            entry.names,
            list(ids.places),
            [_PackedText(text.json, text.basis) for text in texts.places],
            steps,
            [
                _PackedRun(
                    id_,
                    one.run_id,
                    one.state,
                    one.since,
                    one.until,
                    one.streaming,
                    entry.outcomes[id_],
                )
                for id_, one in entry.states.items()
            ],
            entry.reported,
            entry.unstepped,
            entry.only_stated,
            tuple(entry.depends_on),
            entry.since,
            entry.until,
            entry.has_relations,
            entry.has_nested,
            entry.is_open,
        )
    )


def unpacked_job(id_: int, body: bytes) -> JobEntry:
    """The entry that these bytes are."""
    job = _JOB.decode(_expanded(body))
    ids, texts = job.ids, [EdgeText(text.json, text.basis) for text in job.texts]
    return JobEntry(
        id_,
        _unpacked_label(job.label),
        job.also,
        job.names,
        [
            GraphStep(
                ids[one.source],
                id_,
                ids[one.target],
                texts[one.read],
                texts[one.written],
                ids[one.newest],
            )
            for one in job.steps
        ],
        {
            one.id: RunState(one.run_id, one.state, one.since, one.until, one.streaming)
            for one in job.runs
        },
        {one.id: one.outcome for one in job.runs},
        job.reported,
        job.unstepped,
        job.only_stated,
        job.depends_on,
        job.since,
        job.until,
        job.has_relations,
        job.has_nested,
        job.is_open,
    )


class _Places:
    """Things that occur several times: each once, with the place where it stands."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def of(self, one: Any) -> int:
        """Where it stands."""
        return self.places.setdefault(one, len(self.places))


def _packed_label(label: NodeLabel | None) -> _PackedLabel | None:
    return None if label is None else _PackedLabel(label.before, label.after)


def _unpacked_label(label: _PackedLabel | None) -> NodeLabel | None:
    if label is None:
        return None
    name: str = orjson.loads(b"{%b}" % label.before)["id"]
    return NodeLabel.called(name, label.before, label.after)


def _compressed(entry: msgspec.Struct) -> bytes:
    compressor = zlib.compressobj(
        LEVEL, zlib.DEFLATED, WINDOW, MEMORY, zlib.Z_DEFAULT_STRATEGY, COMMON
    )
    return compressor.compress(_encode(entry)) + compressor.flush()


def _expanded(body: bytes) -> bytes:
    return zlib.decompressobj(WINDOW, COMMON).decompress(body)
