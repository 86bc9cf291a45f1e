"""The commands: one or more `Command` values at the top level of a file of this package, listed
in `index`.

A command prints answers on stdout, everything else on stderr, and returns 0, or 1 when it could not do its work.
"""

import gc
import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from strandline.cli.index import COMMANDS
from strandline.settings import Settings


def no_arguments(parser: ArgumentParser) -> None:
    """Add nothing to `parser`."""


@dataclass(frozen=True)
class Command:
    """`strandline NAME`: its own arguments, and what it does with them.

    `index` says what it is for.

    `shows` are the settings whose flags its help lists; all settings may be given as flags to every
    command. With `bears_faults` it runs with faulty settings too (they are in `settings.faults`)
    and tells them itself.
    """

    name: str
    run: Callable[[Namespace, Settings], int]
    arguments: Callable[[ArgumentParser], None] = no_arguments
    shows: tuple[str, ...] = ("database_url",)
    bears_faults: bool = False


def command_called(name: str) -> Command:
    """The command of this name; no other command's module is imported."""
    was_enabled = gc.isenabled()
    # libraries make 200,000 objects that stay; looking for cycles among them takes a tenth of an
    # answer
    gc.disable()
    try:
        module = importlib.import_module(f"strandline.cli.commands.{COMMANDS[name].module}")
    finally:
        if was_enabled:
            gc.enable()
    return next(
        one for one in vars(module).values() if isinstance(one, Command) and one.name == name
    )
