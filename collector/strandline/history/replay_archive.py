"""Taking the events of a Parquet archive into a store again, without Spark.

They are taken as a live collector takes them, with their own hashes and moments of receipt. Taking
an archive twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from strandline.errors import SettingsError, StrandlineError
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ["hash", "received_at", "body"]
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def take_archive(
    engine: Engine, folder: Path, batch_records: int
) -> tuple[Counter[str], list[str]]:
    """Take every event of an archive, the oldest files first.

    Returns how many were stored, duplicate, dead or unread, and the reasons of the dead ones.
    """
    batches = Batches(engine)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for file in _files(folder):
        for part in _parts(file, batch_records, COLUMNS):
            records = list(_records(part))
            outcomes = batches.write_or_keep(records)
            counts.update(outcome.kind for outcome in outcomes)
            for record, outcome in zip(records, outcomes, strict=True):
                if outcome.kind == "dead" and record.hash is not None:
                    problems.append(f"{file}: event {record.hash.hex()}: {outcome.reason}")
    return counts, problems


def _files(folder: Path) -> list[Path]:
    """Return the files of an archive by the first moment of receipt in each."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise SettingsError(
            ["replay: pyarrow is not installed: pip install 'strandline[archive]'"]
        ) from None
    files = [file for file in folder.rglob("*.parquet") if not file.name.startswith(".")]
    if not files:
        raise StrandlineError(
            f"{folder}: no Parquet file in this folder; replay takes files of events, or an "
            "archive that strandline archive wrote as Parquet"
        )
    return sorted(files, key=lambda file: (_first_moment(file), file))


def _first_moment(file: Path) -> int:
    for part in _parts(file, 1, ["received_at"]):
        moment: int = part.column(0)[0].as_py()
        return moment
    return 0


def _parts(file: Path, rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file) as archive:
            yield from archive.iter_batches(rows, columns=columns)
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise StrandlineError(
            f"{file}: cannot be read as a part of an archive: {error}; "
            "take it again once it is whole"
        ) from error


def _records(part: pa.RecordBatch) -> Iterator[Record]:
    for row in part.to_pylist():
        received_at = BEGIN + timedelta(microseconds=row["received_at"])
        yield Record(row["body"], received_at, hash=row["hash"])
