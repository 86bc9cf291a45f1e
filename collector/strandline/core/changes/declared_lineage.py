"""What a job's `lineage` facet declares.

The datasets that the job makes and from which origins, and those it consumes itself.

On a JobEvent it is the job's declared lineage, on a RunEvent lineage that was observed during that
run; so what it names is the job's also where it is not among the event's inputs and outputs.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.core.changes.bundles import Link
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.rows import DatasetSeen
from strandline.core.changes.senders import Owns, everything, owned
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.names import is_delta_log

# sink column, origin, transformation
Origin = tuple[str, f.InputField, f.Transformation]
PLAIN = f.Transformation()


class EventNames(NamedTuple):
    """How a dataset that a facet names is found.

    `own` are those of the event that are stored as their names do not tell.
    """

    memo: Memo
    own: Mapping[tuple[str, str], DatasetSeen]

    def dataset(self, name: tuple[str, str]) -> DatasetSeen | None:
        """The dataset that the event calls so; None if it is nobody's lineage."""
        return self.own.get(name) or (None if is_delta_log(name[1]) else self.memo.dataset(*name))


class Declared(NamedTuple):
    """By id the datasets that the job makes, the origins of those that have any, and what the job consumes itself."""

    sinks: Mapping[int, DatasetSeen]
    origins: Mapping[int, list[Origin]]
    sources: Mapping[int, DatasetSeen]


NOTHING_DECLARED = Declared({}, {}, {})


def names_of(memo: Memo, ends: Iterable[Link]) -> EventNames:
    """How an event's facets name its inputs, or its outputs."""
    return EventNames(memo, {one.called: one.dataset for one in ends if _is_renamed(memo, one)})


def _is_renamed(memo: Memo, one: Link) -> bool:
    """Whether it is stored as another dataset than its name says.

    Mostly it is stored under this very name.
    """
    stored_as = (one.dataset.namespace, one.dataset.name)
    return stored_as != one.called and one.dataset.id != memo.dataset(*one.called).id


def declared_by(
    memo: Memo,
    job_id: int,
    lineage: f.JobLineage | None,
    inputs: Iterable[Link],
    outputs: Iterable[Link],
) -> Declared:
    """What the facet declares, in an event with these inputs and outputs.

    Entries for other jobs are none of this one's.
    """
    if lineage is None:
        return NOTHING_DECLARED
    sinks: dict[int, DatasetSeen] = {}
    origins: dict[int, list[Origin]] = {}
    sources: dict[int, DatasetSeen] = {}
    written, read = names_of(memo, outputs), names_of(memo, inputs)
    for entry in lineage.entries:
        if entry.type == "JOB" and is_own(memo, job_id, entry):
            sources |= _consumed(read, entry.inputs or ())
        elif (name := _dataset_named(entry)) is not None:
            sink, origins_of_sink = written.dataset(name), origins_of(entry)
            if sink is not None:
                sinks[sink.id] = sink
                if origins_of_sink is not None:
                    origins.setdefault(sink.id, []).extend(origins_of_sink)
    return Declared(sinks, origins, sources)


def is_own(memo: Memo, job_id: int, entry: f.Lineage) -> bool:
    """Whether an entry for a job is for the event's own, which needs no name."""
    return not entry.name or memo.job(entry.namespace or "", entry.name).id == job_id


def _dataset_named(entry: f.Lineage) -> tuple[str, str] | None:
    """Namespace and name of the dataset that an entry is about."""
    return (
        (entry.namespace, entry.name)
        if entry.type != "JOB" and entry.namespace and entry.name
        else None
    )


def _consumed(read: EventNames, inputs: Iterable[f.InputField]) -> dict[int, DatasetSeen]:
    """The datasets that a job consumes itself."""
    named = [(one.namespace, one.name) for one in inputs if one.type != "JOB"]
    consumed = [read.dataset(name) for name in named if all(name)]
    return {one.id: one for one in consumed if one is not None}


def origins_of(lineage: f.Lineage) -> list[Origin] | None:
    """The origins that a lineage facet or entry states; [] is "none", which only `inputs` can say.

    None says nothing.
    """
    origins = _origins_in("", lineage.inputs or ())
    for column, entry in (lineage.fields or {}).items():
        origins += _origins_in(column, entry.inputs)
    return None if lineage.inputs is None and not origins else origins


def _origins_in(column: str, inputs: Iterable[f.InputField]) -> list[Origin]:
    """The origins of one column, or of all (""), without jobs."""
    return [
        (column, one, how)
        for one in inputs
        if one.type != "JOB"
        for how in one.transformations or (PLAIN,)
    ]


def links_beside(declared: Declared, links: Iterable[Link], owns: Owns = everything) -> list[Link]:
    """The job's links with what is declared and not among these links, under this name or one that their symlinks state."""
    linked = set()
    for link in links:
        linked.add((link.direction, link.dataset.id))
        if link.group.aliases is not None:
            linked |= {(link.direction, one.alias_id) for one in link.group.aliases.aliases}
    named = [(SOURCE, one) for one in declared.sources.values()] + [
        (SINK, one) for one in declared.sinks.values()
    ]
    beside = [(way, one) for way, one in named if (way, one.id) not in linked]
    return [owned(Link(way, one, (one.namespace, one.name)), owns) for way, one in beside]
