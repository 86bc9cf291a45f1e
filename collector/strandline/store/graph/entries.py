"""What is kept of the graph in memory.

Datasets with the jobs that touch them, jobs with their steps, ready to be shown.

An entry never changes but for the jobs that touch a dataset; whatever else is news makes a new one.
What depends on more than the entry itself (which of a job's steps an answer has, how far a node is)
is decided when an answer is written.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from strandline.core.walk import WalkStep
from strandline.store.lineage.relations import JobEdge, Seen
from strandline.store.lineage.run_state import RunState
from strandline.store.lineage.table_edges import FoundEdge, seen_answer, state_of_edge

FOREVER = 2**63
Answer = dict[str, Any]


def part_of(answer: Mapping[str, Any]) -> bytes:
    """The members of an object as JSON, without its braces."""
    return orjson.dumps(answer)[1:-1]


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """How a node is shown: its id, that id as JSON, and all that stands before and after its distance."""

    id: str
    quoted: bytes
    before: bytes
    after: bytes

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> "NodeLabel":
        """The label of a node as answers have it."""
        items = list(node.items())
        place = list(node).index("distance")
        before, after = part_of(dict(items[:place])), part_of(dict(items[place + 1 :]))
        return cls.called(node["id"], before, b"," + after if after else b"")

    @classmethod
    def called(cls, id_: str, before: bytes, after: bytes) -> "NodeLabel":
        """The label of the node that is called so."""
        return cls(
            id_, b'"%b"' % orjson.dumps(id_)[1:-1], before, after
        )  # what dumps gives keeps a kilobyte for itself


@dataclass(slots=True)
class DatasetEntry:
    """A dataset under its canonical id, and the jobs, as named by their events, that ever read (0) or wrote (1) it.

    names: its other ids. has_lifecycle: something was said of its creation or its drop.
    """

    label: NodeLabel | None
    names: tuple[int, ...]
    touching: tuple[dict[int, None], dict[int, None]]
    has_lifecycle: bool

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 790 + 90 * (len(self.touching[0]) + len(self.touching[1]))


class _EdgeBasis(msgspec.Struct, array_like=True):
    """What joining an edge with others asks of it; newest.

    Owner, since and at of its newest relation.
    """

    rule: str
    newest: tuple[int, int, int] | None
    seen: Seen


_encode = msgspec.msgpack.Encoder().encode
_BASIS = msgspec.msgpack.Decoder(_EdgeBasis)


class EdgeText:
    """An edge of a job without its ends and origins: its JSON between these.

    And as bytes what it stands for.
    """

    __slots__ = ("basis", "json")

    def __init__(self, json: bytes, basis: bytes) -> None:
        self.json = json
        self.basis = basis

    @classmethod
    def of(cls, edge: FoundEdge, states: Mapping[int, RunState]) -> "EdgeText":
        """The text of an edge whose runs have these states."""
        related = edge.related
        newest = None if related is None else (related.owner, related.since, related.at)
        json = b"," + part_of(
            {"rule": edge.rule} | state_of_edge(edge, states) | seen_answer(edge.seen)
        )
        return cls(json, _encode(_EdgeBasis(edge.rule, newest, edge.seen)))

    @property
    def edge(self) -> FoundEdge:
        """What it stands for, as far as joining asks for it."""
        basis = _BASIS.decode(self.basis)
        related = None if basis.newest is None else JobEdge(0, 0, 0, 0, 0, *basis.newest)
        return FoundEdge(basis.rule, related, basis.seen)


@dataclass(frozen=True, slots=True, eq=False)
class GraphStep(WalkStep[int]):
    """A step of a job with its edges; compared by identity, which is all that a walk needs.

    newest: of the runs that it is known from, the one that began last.
    """

    read: EdgeText
    written: EdgeText
    newest: int | None

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(slots=True)
class JobEntry:
    """A job, or only a name under which runs of other jobs were reported.

    also: the jobs that runs of this name belong to. names: other names of its runs. states: of its
    owning runs, with what they came to as JSON. reported: (job, direction, dataset) that was
    reported under this name; of the job itself only what it is not known to touch. unstepped:
    (direction, dataset) that it touches and no step shows; only_stated: the other way round, as
    edges alone name it. depends_on: ids of runs whose news change it. since, until: the moments
    between which its states are as they are here. is_open: some of its answer depends on which
    steps are asked for.
    """

    id: int
    label: NodeLabel | None
    also: tuple[int, ...] = ()
    names: tuple[int, ...] = ()
    steps: Sequence[GraphStep] = ()
    states: dict[int, RunState] = field(default_factory=dict)
    outcomes: dict[int, bytes] = field(default_factory=dict)
    reported: tuple[tuple[int, int, int], ...] = ()
    unstepped: frozenset[tuple[int, int]] = frozenset()
    only_stated: frozenset[tuple[int, int]] = frozenset()
    depends_on: Collection[int] = ()
    since: int = 0
    until: int = FOREVER
    has_relations: bool = False
    has_nested: bool = False
    is_open: bool = False
    joined: dict[tuple[EdgeText, EdgeText], EdgeText] = field(default_factory=dict)

    def touches(self, direction: int, dataset: int) -> bool:
        """Whether its known runs touched the dataset."""
        if (direction, dataset) in self.unstepped:
            return True
        ends = ((step.source, step.target)[direction] for step in self.steps)
        return (direction, dataset) not in self.only_stated and dataset in ends

    def join(self, one: EdgeText, other: EdgeText) -> EdgeText:
        """An edge that stands for what two stand for."""
        found = self.joined.get((one, other))
        if found is None:
            edge = one.edge
            edge.join(other.edge)
            found = self.joined[one, other] = EdgeText.of(edge, self.states)
        return found

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 1_370 + 130 * len(self.steps) + 900 * len(self.states) + 250 * len(self.depends_on)
