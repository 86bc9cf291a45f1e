"""All commands by name, in the four groups of the help."""

from collections.abc import Mapping

from strandline.cli.command import Command
from strandline.cli.declarations import act, ask, run, scale

GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Ask": ask.COMMANDS,
    "Act": act.COMMANDS,
    "Run": run.COMMANDS,
    "Scale": scale.COMMANDS,
}
COMMANDS: Mapping[str, Command] = {
    command.name: command for commands in GROUPS.values() for command in commands
}
