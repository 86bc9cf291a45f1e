"""Seeds one after the other, each in a world of its own."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from fault_world.checks import fault_of
from fault_world.databases import Databases
from fault_world.injector import Crash
from fault_world.world import World


class Run(NamedTuple):
    """What became of a seed: what is wrong ('' if nothing), its story, and what struck it."""

    seed: int
    wrong: str
    story: list[str]
    struck: dict[str, int]


def simulate(seeds: Iterable[int], folder: Path, now: datetime) -> Iterator[Run]:
    """Run the seeds in a folder that is the caller's to remove."""
    databases = Databases(folder)
    for seed in seeds:
        yield _run(seed, databases, now)
    databases.close()


def _run(seed: int, databases: Databases, now: datetime) -> Run:
    with databases.fresh() as eyes:
        world = World(seed, databases, eyes, now)
        try:
            wrong = fault_of(world, databases)
        except (Exception, Crash) as error:  # noqa: BLE001 - nobody in the world catches it: so no process would go on
            wrong = f"{type(error).__name__}: {error}".partition("\n")[0]
    struck = world.injector.struck | ({"fenced": world.fenced} if world.fenced else {})
    return Run(seed, wrong, world.story, struck)
