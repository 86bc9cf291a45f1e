"""Shared parts of the ingest benchmark.

How long each runs, where, and how a figure is told.
"""

from dataclasses import dataclass
from pathlib import Path

from bench._machine import Server
from bench.report import record


@dataclass(frozen=True)
class Sizes:
    """The number of events of each part; a short run only shows that everything works."""

    warm: int
    events: int
    cold: int
    requests: int
    staged: int
    paced: int
    stores: tuple[int, ...]
    window: int
    judged: bool


FULL = Sizes(4000, 24_000, 6000, 12_000, 6000, 10_000, (10_000, 100_000, 1_000_000), 5000, True)
SHORT = Sizes(500, 1500, 1500, 400, 500, 500, (500, 1500), 500, False)


@dataclass(frozen=True)
class Parts:
    """Shared state of all measurements."""

    folder: Path
    server: Server
    bootstrap: str
    sizes: Sizes

    def tell(
        self, name: str, value: float, unit: str, least: float = 0, most: float = 0, note: str = ""
    ) -> None:
        """Record a figure, judged by its target where there is one and the run is long enough."""
        target = f">= {least:,g}" if least else f"<= {most:,g}" if most else ""
        met = (value >= least if least else value <= most) if target and self.sizes.judged else None
        record(f"ingest.{name}", value, unit, target, met, note)
