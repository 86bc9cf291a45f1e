"""`strandline migrate`: brings the database to the schema of this program; forward only, safe to run twice at once."""

import sys
from argparse import ArgumentParser, Namespace

from strandline.cli.answers import counted, tell
from strandline.cli.command import Command
from strandline.settings import Settings
from strandline.store.ingest.to_templates import to_templates
from strandline.store.search.upkeep import fill_index
from strandline.store.sql.engine import make_engine, migrate, revisions
from strandline.store.sql.shared_settings import agreed, has_templates


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "--templates",
        action="store_true",
        help="move what runs read and wrote into templates as well, once no process of an earlier version is left",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(options: Namespace, settings: Settings) -> int:
    """Migrate, and say which database that was."""
    engine = make_engine(settings.database_url)
    migrate(engine, report=_report)
    fill_index(engine)
    moved = to_templates(engine, lambda runs: _report(f"{runs} runs have templates")) if options.templates else None
    with engine.connect() as connection:
        templates = has_templates(agreed(connection))
    engine.dispose()
    where, schema = engine.url.render_as_string(hide_password=True), revisions()[-1]
    answer = {"database": where, "schema": schema, "templates": templates}
    tell(options.json, answer | ({} if moved is None else {"moved": moved}), lambda: _lines(where, moved, templates))
    return 0


def _lines(where: str, moved: int | None, templates: bool) -> list[str]:
    lines = [f"{where} has the schema of this version"]
    if moved:
        lines.append(f"{counted(moved, 'run')} {'was' if moved == 1 else 'were'} moved into templates")
    if not templates:
        lines.append(
            "runs keep a row for each relation:"
            " strandline migrate --templates moves them, once no process of an earlier version is left"
        )
    return lines


def _report(line: str) -> None:
    """Progress, where somebody watches."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


MIGRATE = Command("migrate", run, arguments)
