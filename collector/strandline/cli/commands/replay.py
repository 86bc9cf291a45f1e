"""`strandline replay`: takes events from files or archives again, or dead letters.

What is stored already stays as it is.
"""

import json
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from gzip import BadGzipFile
from pathlib import Path

from sqlalchemy import Engine

from strandline.cli.answers import warn
from strandline.cli.open_store import existing_store, open_store
from strandline.errors import SettingsError, StrandlineError
from strandline.history.replay_archive import take_archive
from strandline.logs import make_log
from strandline.settings import Settings
from strandline.transports.dead_letters import take_letters
from strandline.transports.files import take_file


def run(options: Namespace, settings: Settings) -> int:
    """Take everything named; 1 if something in it is no event."""
    if bool(options.files) == options.dead_letters:
        raise SettingsError(["replay: name files, or say --dead-letters"])
    _refuse_missing(options.files)
    if options.dead_letters:
        engine = existing_store(settings)
    else:
        engine = open_store(settings, make_log(settings.log_format, "warning"))
    total: Counter[str] = Counter()
    for file in options.files or [None]:
        counts = _taken(engine, file, settings.batch_records)
        total += counts
        if not options.json:
            print(_summary(file, counts))
    if options.json:
        print(json.dumps({kind: total[kind] for kind in KINDS}))
    engine.dispose()
    return 1 if total["dead"] else 0


def _taken(engine: Engine, file: str | None, batch_records: int) -> Counter[str]:
    if file is None:
        return take_letters(engine)
    try:
        if Path(file).is_dir():
            counts, problems = take_archive(engine, Path(file), batch_records)
        else:
            counts, problems = take_file(engine, file, batch_records)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise StrandlineError(f"{file}: {error}; take it again once it is whole") from error
    for problem in problems:
        warn(problem)
    return counts


KINDS = ("stored", "duplicate", "dead", "unread")


def _refuse_missing(files: Iterable[str]) -> None:
    missing = [file for file in files if not _can_be_read(file)]
    if missing:
        raise StrandlineError(f"no such file: {', '.join(missing)}")


def _can_be_read(file: str) -> bool:
    """Return whether a file is there; `-` is the standard input."""
    return file == "-" or Path(file).exists()


def _summary(file: str | None, counts: Counter[str]) -> str:
    counted = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    return f"{file or 'dead letters'}: {counted or 'nothing to take'}"
