"""Seeds one after the other, each in a world of its own."""

import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from fault_world.checks import fault_of, reference_engine
from fault_world.injector import Crash
from fault_world.world import World
from strandline.store.sql.engine import make_engine, migrate


class Run(NamedTuple):
    """What became of a seed: what is wrong ('' if nothing), its story, and what struck it."""

    seed: int
    wrong: str
    story: list[str]
    struck: dict[str, int]


def simulate(seeds: Iterable[int], folder: Path, now: datetime) -> Iterator[Run]:
    """Run the seeds in a folder that is the caller's to remove."""
    template, other = folder / "template.db", folder / "reference.db"
    engine = make_engine(f"sqlite:///{template}")
    migrate(engine)
    engine.dispose()
    shutil.copy(template, other)
    reference = reference_engine(other)
    for seed in seeds:
        yield _run(seed, template, folder, now, reference)
    reference.dispose()


def _run(seed: int, template: Path, folder: Path, now: datetime, reference: Engine) -> Run:
    world = World(seed, template, folder, now)
    try:
        wrong = fault_of(world, reference)
    except (Exception, Crash) as error:  # noqa: BLE001 - nobody in the world catches it: so no process would go on
        wrong = f"{type(error).__name__}: {error}".partition("\n")[0]
    finally:
        world.close()
        for file in folder.glob(f"{seed}.db*"):
            file.unlink()
    struck = world.injector.struck | ({"fenced": world.fenced} if world.fenced else {})
    return Run(seed, wrong, world.story, struck)
