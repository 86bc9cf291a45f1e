"""`strandline migrate`: brings the database to the schema of this program; forward only, safe to run twice at once."""

from argparse import Namespace

from strandline.cli.command import Command
from strandline.settings import Settings
from strandline.store.connect import make_engine, migrate


def run(options: Namespace, settings: Settings) -> int:
    """Migrate, and say which database that was."""
    engine = make_engine(settings.database_url)
    migrate(engine)
    print(f"{engine.url.render_as_string(hide_password=True)} has the schema of this version")
    engine.dispose()
    return 0


MIGRATE = Command("migrate", run)
