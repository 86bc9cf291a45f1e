"""A command: its line in the help, its options, and the function that runs it."""

import gc
import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from strandline.settings import Settings


def no_arguments(parser: ArgumentParser) -> None:
    """Add nothing to `parser`."""


class Command(NamedTuple):
    """`strandline NAME`.

    `handler` is MODULE:FUNCTION of `cli.commands`. It is imported when the command runs: help needs
    neither the store nor a library.

    `shows` are the settings whose flags its help lists, None all of them; every command takes all
    settings as flags. With `bears_faults` it runs with faulty settings too (they are in
    `settings.faults`) and reports them itself.
    """

    name: str
    about: str
    handler: str
    arguments: Callable[[ArgumentParser], None] = no_arguments
    shows: tuple[str, ...] | None = ("database_url",)
    bears_faults: bool = False

    def imported(self) -> "Callable[[Namespace, Settings], int]":
        """Return the function that runs the command."""
        module, _, function = self.handler.partition(":")
        was_enabled = gc.isenabled()
        # Libraries make 200,000 objects that stay: looking for cycles among them takes a tenth of
        # an answer.
        gc.disable()
        try:
            commands = importlib.import_module(f"strandline.cli.commands.{module}")
        finally:
            if was_enabled:
                gc.enable()
        run: Callable[[Namespace, Settings], int] = getattr(commands, function)
        return run
