"""`strandline migrate`: creates the schema in an empty database, or upgrades it.

Forward only, safe to run twice at once.
"""

from argparse import Namespace

from strandline.cli.answers import tell
from strandline.cli.open_store import wait_for_database
from strandline.settings import Settings
from strandline.store.search.upkeep import fill_index
from strandline.store.sql.engine import make_engine, migrate, revisions


def run(options: Namespace, settings: Settings) -> int:
    """Migrate, and print the database and its schema."""
    from strandline.logs import make_log  # the help needs no logs

    wait_for_database(settings, make_log(settings.log_format, settings.log_level))
    engine = make_engine(settings.database_url)
    migrate(engine)
    fill_index(engine)
    engine.dispose()
    where = engine.url.render_as_string(hide_password=True)
    answer = {"database": where, "schema": revisions()[-1]}
    tell(answer, lambda: [f"{where} has the schema of this version"], as_json=options.json)
    return 0
