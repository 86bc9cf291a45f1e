"""What a job's `lineage` facet declares: the datasets that the job makes and from which origins, and those it consumes itself.

On a JobEvent it is the job's declared lineage, on a RunEvent lineage that was observed during that run; so what it names
is the job's also where it is not among the event's inputs and outputs.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from strandline.core.changes.bundles import Link
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.parse_cache import Dataset, Memo, Said
from strandline.core.changes.senders import Owns, everything, link_elsewhere
from strandline.core.openlineage import facets as f

# sink column, origin, transformation
Origin = tuple[str, f.InputField, f.Transformation]
PLAIN = f.Transformation()


class Ends(Protocol):
    """A dataset of an event, under the name that the event has for it, with what its facets say."""

    @property
    def called(self) -> tuple[str, str]:
        """Namespace and name, as they came."""

    @property
    def known(self) -> Dataset:
        """What it is stored as."""

    @property
    def link(self) -> Link:
        """Which."""

    @property
    def said(self) -> Said:
        """What."""


class Names(NamedTuple):
    """How a dataset that a facet names is found: `own` are those of the event that are stored as their names do not tell."""

    memo: Memo
    own: Mapping[tuple[str, str], Dataset]

    def dataset(self, name: tuple[str, str]) -> Dataset:
        """The dataset that the event calls so."""
        return self.own.get(name) or self.memo.dataset(*name)


class Declared(NamedTuple):
    """By id the datasets that the job makes, the origins of those of which any are said, and what the job consumes itself."""

    sinks: Mapping[int, Dataset]
    origins: Mapping[int, list[Origin]]
    sources: Mapping[int, Dataset]


NOTHING_DECLARED = Declared({}, {}, {})


def names_of(memo: Memo, ends: Iterable[Ends]) -> Names:
    """How an event's facets name its inputs, or its outputs."""
    return Names(memo, {one.called: one.known for one in ends if _is_renamed(memo, one)})


def _is_renamed(memo: Memo, one: Ends) -> bool:
    """Whether it is stored as another dataset than its name tells; mostly it is stored under this very name."""
    return one.known.named[2:4] != one.called and one.known.id != memo.dataset(*one.called).id


def declared_by(
    memo: Memo, job_id: int, lineage: f.JobLineage | None, inputs: Iterable[Ends], outputs: Iterable[Ends]
) -> Declared:
    """What the facet declares, in an event with these inputs and outputs; entries for other jobs are none of this one's."""
    if lineage is None:
        return NOTHING_DECLARED
    sinks: dict[int, Dataset] = {}
    origins: dict[int, list[Origin]] = {}
    sources: dict[int, Dataset] = {}
    made, read = names_of(memo, outputs), names_of(memo, inputs)
    for entry in lineage.entries:
        if entry.type == "JOB" and is_own(memo, job_id, entry):
            named = [(one.namespace, one.name) for one in entry.inputs or () if one.type != "JOB"]
            consumed = [read.dataset(name) for name in named if all(name)]
            sources.update((one.id, one) for one in consumed if not one.noise)
        elif entry.type != "JOB" and entry.namespace and entry.name:
            sink, said = made.dataset((entry.namespace, entry.name)), origins_of(entry)
            if not sink.noise:
                sinks[sink.id] = sink
                if said is not None:
                    origins.setdefault(sink.id, []).extend(said)
    return Declared(sinks, origins, sources)


def is_own(memo: Memo, job_id: int, entry: f.Lineage) -> bool:
    """Whether an entry for a job is for the event's own, which needs no name."""
    return not entry.name or memo.job(entry.namespace or "", entry.name)[0] == job_id


def origins_of(lineage: f.Lineage) -> list[Origin] | None:
    """The origins that a lineage facet or entry states; [] is "none", which only `inputs` can say; None says nothing."""
    origins = [("", one, how) for one in lineage.inputs or () for how in one.transformations or (PLAIN,)]
    for column, entry in (lineage.fields or {}).items():
        origins += [(column, one, how) for one in entry.inputs for how in one.transformations or (PLAIN,)]
    origins = [origin for origin in origins if origin[1].type != "JOB"]
    return None if lineage.inputs is None and not origins else origins


def links_beside(declared: Declared, links: Iterable[Link], owns: Owns = everything) -> list[Link]:
    """The job's links with what is declared and not among these links, under this name or one that their symlinks state."""
    known = set()
    for link in links:
        known.add((link.direction, link.dataset_id))
        known |= {(link.direction, one.alias_id) for one in (link.aliases.aliases if link.aliases else ())}
    named = [(SOURCE, one) for one in declared.sources.values()] + [(SINK, one) for one in declared.sinks.values()]
    beside = [(way, one) for way, one in named if (way, one.id) not in known]
    return [
        Link(way, one.id, one.named, 0, (), None) if owns(one.mention.namespace) else link_elsewhere(way, one)
        for way, one in beside
    ]
