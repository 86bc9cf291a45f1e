"""`python -m worlds.simulation FIRST COUNT`: simulates seeds.

1 and the story where one fails, 0 where none does.

A failing seed is the same story again: `python -m worlds.simulation SEED 1`. With `--plant
NAME,...` (or `all`) each bug of planted.py is simulated in a child of its own until it is caught; 1
if one survives.
"""

import argparse
import importlib
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from worlds.simulation.planted import BUGS, catch

# What takes long to import, and no bug is planted in: children have it at once.
LIBRARIES = (
    "alembic.command",
    "alembic.config",
    "sqlalchemy.dialects.sqlite",
    "kafka",
    "hypothesis",
    "pytest",
    "msgspec",
)


def main() -> int:
    """Simulate, and say what was seen."""
    parser = argparse.ArgumentParser("worlds.simulation", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument(
        "--plant", default="", help="bugs of worlds/simulation/planted.py, with commas, or all"
    )
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    if not options.plant:
        return simulated(seeds)
    for library in LIBRARIES:
        importlib.import_module(library)
    return catch(options.plant, BUGS, lambda: simulated(seeds, stories=False))


def simulated(seeds: range, *, stories: bool = True) -> int:
    """1 where a seed fails, after saying which and why."""
    from worlds.simulation.runs import simulate

    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        began, found, points = time.monotonic(), Counter[str](), set[str]()
        for run in simulate(seeds, Path(folder), datetime.now(UTC).replace(microsecond=0)):
            found.update(run.struck, seeds=1, states=run.states)
            points |= run.points
            if run.wrong:
                print(
                    f"seed {run.seed}: {run.wrong[:300]}",
                    *(run.story if stories else ()),
                    sep="\n  ",
                    flush=True,
                )
                return 1
    print(
        f"{found.pop('seeds')} seeds from {seeds[0]}, {time.monotonic() - began:.0f} s, {time.process_time():.0f} s of CPU;"
        f" {found.pop('states')} states of the store, {len(points)} points of fault; {dict(found)}",
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
