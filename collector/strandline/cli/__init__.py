"""The command `strandline`.

`run()` is its entry point, `main(argv, environ)` the same without a process around it.

Answers go to stdout, problems as one line each to stderr; 0 is done, 1 is failed, 2 is used
wrongly: an unknown option, options that contradict each other, a faulty setting, a name that
nothing has.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from strandline import __version__
from strandline.cli.command import Command
from strandline.cli.declarations import COMMANDS, GROUPS
from strandline.errors import (
    AmbiguousError,
    DemoError,
    NotFoundError,
    ParameterError,
    QuestionError,
    SettingsError,
    StrandlineError,
)
from strandline.escaping import escaped, escaped_lines

EPILOG = (
    "Every setting is also STRANDLINE_NAME in the environment or in ./.env; "
    "`strandline check --help` lists them."
)

USED_WRONGLY = (NotFoundError, ParameterError, QuestionError)
SHOWN = 5  # candidates of a name that nothing has


def run() -> None:
    """Run the command line of this process.

    What the terminal's encoding has no sign for is shown as `?`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:], os.environ))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what `argv` asks for and return the exit code."""
    try:
        return _obey(argv, environ)
    except SystemExit as exit_:  # argparse: --help is 0, wrong usage 2
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except SettingsError as error:
        return _tell(*error.faults, code=2)
    except StrandlineError as error:
        in_lines = isinstance(error, DemoError)  # the last lines of a log
        code = 2 if isinstance(error, USED_WRONGLY) else 1
        return _tell(problem_of(error), code=code, escape=escaped_lines if in_lines else escaped)
    except (
        UnicodeEncodeError
    ) as error:  # bytes of an argument that are no text stand for themselves until they are used
        return _tell(f"not UTF-8: {error.object!a}", code=2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has seen enough
        return 0
    except OSError as error:  # a file or folder that cannot be used
        return _tell(
            f"{error.strerror or error}: {error.filename}" if error.filename else str(error), code=1
        )
    except KeyboardInterrupt:
        return 1
    except Exception as error:
        if (reason := _refusal_of_database(error)) is None:
            raise
        return _tell(f"the database refuses: {reason}", code=1)


def _obey(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    command = COMMANDS.get(argv[0]) if argv else None
    if command is None:
        parser = _parser()
        parser.parse_args(argv)
        parser.error("the command comes first")
    options = parser_of(command).parse_args(argv[1:])
    from pathlib import Path

    from strandline.settings import read_dotenv, read_settings, read_what_can_be_read

    read = read_what_can_be_read if command.bears_faults else read_settings
    settings = read(read_dotenv(Path(".env")) | dict(environ), _flags(options))
    return command.imported()(options, settings)


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that needs one line to say what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Say it, and exit with 2."""
        self.exit(2, f"{self.prog}: {escaped(message)} ({self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of a command line without a command: its help lists all of them."""
    parser = _Parser(
        "strandline",
        usage="strandline [-h] [--version] COMMAND ...",
        description="Snapshot-level lineage for Spark and the lakehouse.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"strandline {__version__}")
    parser.add_argument(
        "command", metavar="COMMAND", choices=list(COMMANDS), help=argparse.SUPPRESS
    )
    for title, commands in GROUPS.items():
        group = parser.add_argument_group(title)
        for command in commands:
            group._group_actions.append(_line_of(command))
    return parser


def _line_of(command: Command) -> argparse.Action:
    """Return a command's line in the help; nothing parses with it."""
    return argparse.Action([], dest=command.name, metavar=command.name, help=command.about)


def parser_of(command: Command) -> argparse.ArgumentParser:
    """Return the parser of what follows a command's name."""
    parser = _Parser(
        f"strandline {command.name}",
        description=command.about,
        epilog=EPILOG,
        conflict_handler="resolve",
    )
    _add_flags(parser, command.shows)
    command.arguments(parser)
    for action in actions_of(parser):
        _add_flags(action, command.shows)
    return parser


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of what a command does, such as `add` of `keys add`."""
    groups = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return [action for group in groups for action in group.choices.values()]


def _add_flags(parser: argparse.ArgumentParser, shown: Sequence[str] | None) -> None:
    """Add a flag for each setting, unless the command has one of that name.

    A command that can ask a collector has --url itself; the others would ignore it.
    """
    from strandline.settings import declared

    group = parser.add_argument_group("settings")
    for name, how in declared():
        flag = f"--{name.replace('_', '-')}"
        if name == "url" or flag in parser._option_string_actions:
            continue
        about = str(how["about"]) if shown is None or name in shown else argparse.SUPPRESS
        group.add_argument(
            flag,
            dest=f"setting_{name}",
            metavar="VALUE",
            help=about,
            default=argparse.SUPPRESS,
        )


def _flags(options: argparse.Namespace) -> dict[str, str]:
    flags = {
        name: value
        for name, value in vars(options).items()
        if name.startswith("setting_") and value is not None
    }
    return {name.removeprefix("setting_"): value for name, value in flags.items()}


def problem_of(error: StrandlineError) -> str:
    """Return the message of an error, in one line."""
    return f"{error}{_candidates(error)}"


def _candidates(error: StrandlineError) -> str:
    """Return the similar names, as the end of the error's line."""
    if not isinstance(error, NotFoundError) or not error.candidates:
        return ""
    if isinstance(error, AmbiguousError):
        return f": say which: {', '.join(error.candidates)}"
    return f"; did you mean {', '.join(error.candidates[:SHOWN])}?"


def _refusal_of_database(error: Exception) -> str | None:
    """Return the database's own reason, if the error is one of SQLAlchemy's.

    None otherwise.
    """
    errors = sys.modules.get("sqlalchemy.exc")
    if errors is None or not isinstance(error, errors.DBAPIError):
        return None
    lines = str(error.orig or error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if error.statement is not None:
        return reason
    from strandline.settings import setting_called

    return f"{reason}; check {setting_called('database_url')}"


def _tell(*problems: str, code: int, escape: Callable[[str], str] = escaped) -> int:
    for problem in problems:
        print(f"strandline: {escape(problem)}", file=sys.stderr)
    return code
