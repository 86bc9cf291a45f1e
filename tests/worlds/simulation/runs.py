"""Seeds one after the other, each in a world of its own."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from worlds.simulation.checks import Referee, fault_of
from worlds.simulation.databases import Databases
from worlds.simulation.injector import Crash
from worlds.simulation.world import World


class Run(NamedTuple):
    """The outcome of a seed.

    What is wrong ('' if nothing), its story, what struck it and where, and how many states of the
    store it showed that no world of its history had shown before.
    """

    seed: int
    wrong: str
    story: list[str]
    struck: dict[str, int]
    points: set[str]
    states: int


def simulate(seeds: Iterable[int], folder: Path, now: datetime) -> Iterator[Run]:
    """Run the seeds in a folder that is the caller's to remove."""
    databases = Databases(folder)
    referee = Referee(databases.reference)
    for seed in seeds:
        yield _run(seed, databases, referee, now)
    databases.close()


def _run(seed: int, databases: Databases, referee: Referee, now: datetime) -> Run:
    databases.begin()
    world = World(seed, databases, now)
    try:
        wrong = fault_of(world, databases, referee)
    except (Exception, Crash) as error:  # noqa: BLE001 - nobody in the world catches it: so no process would go on
        wrong = f"{type(error).__name__}: {error}".partition("\n")[0]
    struck = world.injector.struck | ({"fenced": world.fenced} if world.fenced else {})
    return Run(
        seed,
        wrong,
        world.story,
        struck,
        world.injector.points,
        referee.new_states(world.history, world.states),
    )
