"""`strandline forget`: a job, dataset, run, namespace, event or secret leaves the whole store.

Without --execute it says in which tables it is. It works on the store itself, so it may run beside
servers.
"""

import getpass
import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from strandline.cli.answers import counted, tell
from strandline.cli.open_store import existing_store
from strandline.errors import QuestionError, RefusedError
from strandline.settings import Settings
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.ingest.forget import forget_secret

LOCK = (
    "--execute also frees the space: VACUUM locks SQLite's file, VACUUM FULL each changed table of "
    "PostgreSQL, one by one"
)
REMAINS = (
    "it stays in backups, archives and exports made before, and in PostgreSQL's WAL, its archive "
    "and replicas that lag: delete them, or wait until they expire"
)


def run(options: Namespace, settings: Settings) -> int:
    """Count the rows that have it, or take it out of them."""
    if options.of and not options.run:
        raise QuestionError("--of names the job of a run: give --run")
    secret = _read(options.secret_from) if options.secret_from else None
    engine = existing_store(settings)
    try:
        return (
            _forget(options, engine) if secret is None else _forget_secret(options, engine, secret)
        )
    finally:
        engine.dispose()


def _forget(options: Namespace, engine: Engine) -> int:
    forgotten = forget(
        engine, _subject(options), Requester(datetime.now(UTC), _user()), execute=options.execute
    )
    answer = {"executed": options.execute, "gone": forgotten.gone, "changed": forgotten.changed}
    deleted, changed = ("deleted", "changed") if options.execute else ("to delete", "to change")
    lines = [f"  {_rows(item)} {deleted}" for item in forgotten.gone.items()]
    lines += [
        f"  {_rows(item)} {changed}: the name is taken out" for item in forgotten.changed.items()
    ]
    tell(
        answer,
        lambda: _summary(lines, executed=options.execute, owed=forgotten.owed),
        as_json=options.json,
    )
    return 0


def _rows(row_count: tuple[str, int]) -> str:
    return f"{counted(row_count[1], 'row')} of {row_count[0]}"


def _summary(lines: list[str], *, executed: bool, owed: bool) -> list[str]:
    if not lines:
        return ["nothing in the store names it"]
    if not executed:
        return [*lines, "nothing was changed; --execute forgets it", LOCK]
    later = (
        [
            (
                "the old bytes are still in the files, which are in use: run the command again, "
                "or a running server removes them"
            )
        ]
        if owed
        else []
    )
    return [*lines, "it is forgotten", *later, REMAINS]


def _subject(options: Namespace) -> Subject:
    if options.run:
        namespace, name = options.of or ("", "")
        return Subject("run", namespace, name, options.run)
    if options.event:
        return Subject("event", id=options.event)
    if options.namespace:
        return Subject("namespace", options.namespace)
    return Subject("job", *options.job) if options.job else Subject("dataset", *options.dataset)


def _user() -> str:
    try:
        return f"command {getpass.getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return "command unknown"


def _forget_secret(options: Namespace, engine: Engine, secret: str) -> int:
    counts = forget_secret(engine, secret, execute=options.execute)
    answer = {"executed": options.execute, "rows": counts}
    tell(answer, lambda: _lines(counts, executed=options.execute), as_json=options.json)
    return 0


def _read(source: str) -> str:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(
            f"the secret cannot be read from {source}: {error}", code="missing"
        ) from error
    return text.strip("\r\n")


def _lines(counts: dict[str, int], *, executed: bool) -> list[str]:
    if not counts:
        return ["the secret is in no row"]
    rows = [f"  {_rows(count)}" for count in sorted(counts.items())]
    if not executed:
        return ["the secret is in", *rows, "nothing was changed; --execute removes it"]
    return [
        "the secret was removed from",
        *rows,
        REMAINS,
        "restart servers that still show it: they keep names in memory",
    ]
