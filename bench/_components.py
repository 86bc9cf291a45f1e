"""Components for the benchmark of versions: 100 tables each, one base table, ten below it, nine
below each of these.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from strandline.core.versions import facts
from strandline.core.versions.facts import Fact, Job, Table

TABLES = 100
LAKE = "iceberg://lake"
JOBS = "bench"
START = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def table(component: int, number: int) -> Table:
    """A table by its number in its component; 0 is the base table."""
    return (LAKE, f"c{component}.t{number}")


def job(component: int, number: int) -> Job:
    """The job that writes a table."""
    return (JOBS, f"c{component}_j{number}")


def source(number: int) -> int | None:
    """The number of the table from which a table is made."""
    return None if number == 0 else (number - 1) // 10 if number > 10 else 0


def run_id(component: int, number: int) -> str:
    """The run of a job."""
    return str(uuid5(NAMESPACE_URL, f"{component}/{number}"))


def started(components: int) -> Iterator[Fact]:
    """Every job runs."""
    for component in range(components):
        for number in range(TABLES):
            above = source(number)
            reads = (table(component, above),) if above is not None else ()
            writes = (table(component, number),)
            yield facts.RunStarted(
                job(component, number),
                run_id(component, number),
                START,
                f"c{component}",
                reads,
                writes,
            )


def committed(component: int, number: int, barrier: int) -> Fact:
    """A job commits a barrier."""
    at, above = START + 10.0 * barrier, source(number)
    return facts.BarrierCommitted(
        job(component, number),
        run_id(component, number),
        f"c{component}",
        barrier,
        at,
        at + 0.01 * number,
        (facts.WrittenSnapshot(table(component, number), str(barrier)),),
        (facts.Used(table(component, above), str(barrier)),) if above is not None else (),
        barrier - 1,
    )


def round_of(components: int, barrier: int) -> Iterator[Fact]:
    """Every job commits a barrier."""
    return (
        committed(component, number, barrier)
        for component in range(components)
        for number in range(TABLES)
    )
