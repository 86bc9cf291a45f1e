"""`strandline forget --secret-from FILE`: takes a secret out of the whole store; without --execute it says where it is."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from strandline.cli.answers import tell
from strandline.cli.command import Command
from strandline.cli.open_store import existing_store
from strandline.errors import RefusedError
from strandline.settings import Settings
from strandline.store.ingest.forget import forget_secret


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "--secret-from",
        required=True,
        metavar="FILE",
        help="a file with the secret (-: standard input); on the command line others would see it",
    )
    parser.add_argument("--execute", action="store_true", help="take it out; without this only count the rows")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Count the rows with the secret, or take it out of them."""
    secret = _read(options.secret_from)
    engine = existing_store(settings)
    try:
        counts = forget_secret(engine, secret, execute=options.execute)
    finally:
        engine.dispose()
    answer = {"executed": options.execute, "rows": counts}
    tell(options.json, answer, lambda: _lines(counts, executed=options.execute))
    return 0


def _read(source: str) -> str:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"the secret cannot be read from {source}: {error}", code="missing") from error
    return text.strip("\r\n")


def _lines(counts: dict[str, int], *, executed: bool) -> list[str]:
    if not counts:
        return ["it is in no row"]
    rows = [f"  {count} rows of {table}" for table, count in sorted(counts.items())]
    if not executed:
        return ["it is in", *rows, "nothing was changed: --execute takes it out"]
    return ["it was taken out of", *rows, "restart servers that show it: names in their memory are as old as they are"]


FORGET = Command("forget", run, arguments)
