"""`strandline migrate`: brings the database to the schema of this program; forward only, safe to run twice at once."""

import sys
from argparse import ArgumentParser, Namespace

from strandline.cli.answers import tell
from strandline.cli.command import Command
from strandline.settings import Settings
from strandline.store.search.upkeep import fill_index
from strandline.store.sql.engine import make_engine, migrate, revisions


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")


def run(options: Namespace, settings: Settings) -> int:
    """Migrate, and say which database that was."""
    engine = make_engine(settings.database_url)
    migrate(engine, report=_report)
    fill_index(engine)
    engine.dispose()
    where, schema = engine.url.render_as_string(hide_password=True), revisions()[-1]
    tell(options.json, {"database": where, "schema": schema}, lambda: [f"{where} has the schema of this version"])
    return 0


def _report(line: str) -> None:
    """Progress, where somebody watches."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


MIGRATE = Command("migrate", run, arguments)
