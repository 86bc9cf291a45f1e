"""What a command is: one file in this package with one or more `Command` values at its top level, found by `commands()`.

A command prints answers on stdout, everything else on stderr, and returns 0, or 1 when it could not do its work.
"""

import importlib
import pkgutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import strandline.cli
from strandline.settings import Settings


def no_arguments(parser: ArgumentParser) -> None:
    """Add nothing to `parser`."""


@dataclass(frozen=True)
class Command:
    """`strandline NAME`: what it is for, its own arguments, and what it does with them.

    `shows` are the settings whose flags its help lists; all settings may be given as flags to every command.
    With `bears_faults` it runs with faulty settings too (they are in `settings.faults`) and tells them itself.
    """

    name: str
    about: str
    run: Callable[[Namespace, Settings], int]
    arguments: Callable[[ArgumentParser], None] = no_arguments
    shows: tuple[str, ...] = ("database_url",)
    bears_faults: bool = False


def commands() -> dict[str, Command]:
    """All commands of the package by name, in the order of their names."""
    found = [command for module in _modules() for command in vars(module).values() if isinstance(command, Command)]
    return {command.name: command for command in sorted(found, key=lambda command: command.name)}


def _modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(strandline.cli.__path__)]
    return [importlib.import_module(f"strandline.cli.{name}") for name in names if not name.startswith("_")]
