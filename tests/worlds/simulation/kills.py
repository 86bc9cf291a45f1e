"""`python -m worlds.simulation.kills FIRST COUNT`.

Kills a collector so often, at its writes and syncs; 1 and the seed where one costs something.

Each seed is a story: a server or a consumer in a forked child takes a history into a real SQLite
file, and is killed again and again, half of the times together with the machine, which loses what
was not synced. Another child goes on with what is there. `--plant` as in `worlds.simulation`: one
of the bugs that only this finds.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from worlds.simulation.planted import KILLS_BUGS, catch

SERVED, CONSUMED = 8, 2  # kills of one story: a record that ends three consumers is a dead letter
WRITES, SYNCS = 250, 6  # so many of a kind may pass before the one at which a child is killed
NOW = datetime(
    2026, 11, 20, 12, tzinfo=UTC
)  # of all stories: what is written, and so what a kill hits, hangs on it
PAGES = (
    30  # of the log, after which SQLite moves them into the file: often enough to be killed in it
)


class Kill(NamedTuple):
    """At which call a child was killed, and whether the machine went with it."""

    point: str
    is_cut: bool


def main() -> int:
    """Kill, and say what was seen."""
    parser = argparse.ArgumentParser("worlds.simulation.kills", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int, help="kills")
    parser.add_argument(
        "--plant",
        default="",
        help="bugs of worlds/simulation/planted.py that kills find, with commas, or all",
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no story after so long"
    )
    options = parser.parse_args()
    from worlds.simulation.tracing import may_trace

    if not may_trace():
        print("this machine lets no process be traced", file=sys.stderr)
        return 2
    if not options.plant:
        return killed(options.first, options.count, options.seconds)
    return catch(options.plant, KILLS_BUGS, lambda: killed(options.first, options.count))


def killed(first: int, count: int, seconds: float = float("inf")) -> int:
    """1 where a story ends otherwise than its history says, after saying which and how."""
    from worlds.simulation.kill_stories import Store

    began, found, seed = time.monotonic(), Counter[Kill](), first
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        store = Store(Path(folder), NOW)
        while found.total() < count and time.monotonic() - began < seconds:
            wrong, kills = store.play(seed)
            found.update(kills)
            if wrong:
                print(
                    f"seed {seed}, after {len(kills)} kills ({kills[-1] if kills else ''}): {wrong[:300]}",
                    flush=True,
                )
                return 1
            seed += 1
        store.close()
    points, used = Counter[str](), sum(os.times()[:4])
    for kill, times in found.items():
        points[kill.point] += times
    print(
        f"{found.total()} kills in {seed - first} stories from {first}, {time.monotonic() - began:.0f} s, {used:.0f} s of CPU;"
        f" {sum(n for kill, n in found.items() if kill.is_cut)} with the machine; {dict(points)}",
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
