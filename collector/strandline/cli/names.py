"""`strandline names`: which names are one dataset: parts of paths to strip, or two names to join. Tried first, then applied."""

import re
from argparse import ArgumentParser, Namespace

from sqlalchemy import Connection

from strandline.cli._models import tell
from strandline.cli.command import Command
from strandline.cli.store import existing_store
from strandline.errors import RefusedError
from strandline.settings import Settings
from strandline.store.patterns import Renaming, apply_alias, apply_patterns, planned_alias, planned_patterns

NAMED = (("namespace", "name"), ("other_namespace", "other_name"))


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    kinds = parser.add_subparsers(dest="kind", metavar="strip|join", required=True)
    strip = kinds.add_parser("strip", help="cut what these regular expressions match out of names that are paths")
    strip.add_argument("patterns", nargs="+", metavar="PATTERN", help=r"such as '(/[^/=]+=[^/]*)+$' for partitions")
    join = kinds.add_parser("join", help="let two names be one dataset")
    for name in sum(NAMED, ()):
        join.add_argument(name)
    for one in (strip, join):
        one.add_argument("--apply", action="store_true", help="do it; otherwise only tell what would change")
        one.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Tell what would change, and change it if asked to."""
    engine = existing_store(settings)
    try:
        with engine.begin() as connection:
            plan = _plan(connection, options)
    except re.error as error:
        raise RefusedError(f"no regular expression: {error.pattern!r}: {error}", "pattern") from None
    finally:
        engine.dispose()
    rows = [{"namespace": one.namespace, "name": one.name, "becomes": one.stripped} for one in plan]
    tell(options.json, {"applied": options.apply, "datasets": rows}, lambda: _lines(plan, options.apply))
    return 0


def _plan(connection: Connection, options: Namespace) -> list[Renaming]:
    """What changes; with --apply it is changed in the same transaction."""
    if options.kind == "strip":
        plan = planned_patterns(connection, options.patterns)
        if options.apply:
            apply_patterns(connection, options.patterns)
        return plan
    one, other = ((getattr(options, namespace), getattr(options, name)) for namespace, name in NAMED)
    plan = planned_alias(connection, one, other)
    if options.apply:
        apply_alias(connection, one, other)
    return plan


def _lines(plan: list[Renaming], applied: bool) -> list[str]:
    told = [f"{one.namespace} {one.name} -> {one.stripped}" for one in plan] or ["no dataset changes its name"]
    return told if applied or not plan else [*told, "nothing is changed yet: say --apply"]


NAMES = Command("names", "which names are one dataset; without --apply only what would change", run, arguments)
