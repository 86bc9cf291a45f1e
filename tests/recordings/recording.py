"""A recording: its applications, and the format of their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Program = Callable[[Any, Path], None]


@dataclass(frozen=True, slots=True)
class Application:
    """One `python job.py`: its name, what it runs, and whether it ends well."""

    name: str
    program: Program
    ends_well: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """Applications that run one after the other over one lake."""

    applications: tuple[Application, ...]
    format: str = "iceberg"


def one(name: str, program: Program, kind: str = "iceberg") -> Recording:
    """Return a recording of one application."""
    return Recording((Application(name, program),), kind)
