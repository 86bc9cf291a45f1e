"""`strandline demo --replay`.

Ten recorded minutes of the bank in a store of its own, and the page over it. No Java, no Spark.

Every moment in the recording is moved by the same span, so that it ends now. Heartbeat timeouts
become a day, so that the jobs that ran when the recording ended still run on the page. Nothing else
is changed.
"""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from strandline.errors import DemoError
from strandline.runtime.follower import Follower
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine, migrate

RECORDING = Path("examples", "recorded", "bank.jsonl.gz")
DAY = 86_400.0
_MOMENT = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))"')
_LEASE = re.compile(r'("timeoutSeconds":)\s*[0-9.]+')


def load(recording: Path, database_url: str, now: datetime | None = None) -> int:
    """Take the recording into a new store in the order of receipt, and return the number of events.

    Each event has a transaction of its own: the model of versions sees them as it saw them when
    they happened.
    """
    if not recording.exists():
        raise DemoError(f"the recorded bank is not in this installation: {recording} is missing")
    engine = make_engine(database_url)
    migrate(engine)
    follower = Follower(engine)
    batches = Batches(engine, finish=follower.take_news, after=follower.follow)
    count = 0
    for record in records(recording, now or datetime.now(UTC)):
        batches.write([record])
        count += 1
    engine.dispose()
    return count


def records(recording: Path, end: datetime) -> Iterator[Record]:
    """The records of a recording, moved so that the last was received at `end`."""
    with gzip.open(recording, "rt", encoding="utf-8") as lines:
        received = [json.loads(line) for line in lines]
    if not received:
        return
    span = end - datetime.fromisoformat(received[-1]["receivedAt"])
    for event in received:
        text = json.dumps(event["event"], separators=(",", ":"))
        moved = _MOMENT.sub(lambda match: f'"{_moved(match[1], span)}"', text)
        if '"strandline_heartbeat"' in moved:
            moved = _LEASE.sub(rf"\g<1>{DAY}", moved)
        yield Record(moved.encode(), datetime.fromisoformat(event["receivedAt"]) + span)


def _moved(moment: str, span: timedelta) -> str:
    return (
        (datetime.fromisoformat(moment) + span).astimezone(UTC).isoformat().replace("+00:00", "Z")
    )
