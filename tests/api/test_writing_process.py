"""The writing process reports whether a commit brought facts.

Only then the server reads the log.
"""

from datetime import UTC, datetime

from sqlalchemy import Engine

from fixtures.versions_server.events import committed, started
from strandline.api.writer.group_commit import WritingProcess
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.ingest.take import Record
from worlds.builders import encode
from worlds.sample_events import as_bytes, run_event

EVENTS = (
    encode(started("to_a", 0, [], ["db.a"], domain="d")),
    as_bytes(run_event()),
    encode(committed("to_a", 10, 1, {}, {"db.a": "a1"}, domain="d")),
)


def test_the_log_is_read_after_each_commit_that_brought_facts(
    sqlite_url: str, sqlite_engine: Engine
) -> None:
    follower, heads = Follower(sqlite_engine), list[int]()

    def follow() -> None:
        follower.follow()
        heads.append(follower.seq)

    process = WritingProcess(Settings(database_url=sqlite_url), lambda: None, follow)
    try:
        outcomes = [process.write([Record(event, datetime.now(UTC))])[0].kind for event in EVENTS]
    finally:
        process.stop()

    assert outcomes == ["stored"] * 3
    assert len(heads) == 2
    assert 0 < heads[0] < heads[1]
