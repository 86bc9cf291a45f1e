"""A recording: its applications, and what they do to each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Program = Callable[[Any, Path], None]
Sources = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Application:
    """One `python job.py`: its name, what it runs, and whether it ends well."""

    name: str
    program: Program
    ends_well: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """Applications that run one after the other over one lake, and what is true of it then.

    sources: of each written table the tables and folders that all of its rows come from or were
    chosen by. newest: the same of the last statement that wrote it, where that differs. unreported:
    sources that no event mentions. failed: the tables whose writing failed, at least once. gone: of
    a table the sources that statements are reported to have read for it, though none of its rows is
    from there any more, or ever was: nobody can know that from these events. made: of each snapshot
    of a table, the oldest first, what it was really made from, as table@number of its snapshot.
    queries: of each streaming query (by name, or the table that it writes) its sources and sinks.
    """

    applications: tuple[Application, ...]
    sources: Sources
    newest: Sources = field(default_factory=dict)
    unreported: Sources = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    gone: Sources = field(default_factory=dict)
    made: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    format: str = "iceberg"
    queries: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)


def one(name: str, program: Program, sources: Sources, **more: Any) -> Recording:
    """A recording of one application."""
    return Recording((Application(name, program),), sources, **more)
