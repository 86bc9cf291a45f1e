"""Every job that Strandline lists, of the corpus and the recordings, arrives in Marquez."""

import gzip
import time
from datetime import UTC, datetime
from itertools import chain

import pytest
from sqlalchemy import Engine, select

import recordings
from fixtures.contract_servers.marquez import MarquezContract
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.times import micros_of
from strandline.exporters.registry import target_called
from strandline.exporters.whole_store import export_all
from strandline.settings import Settings
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.lineage.run_state import run_owners
from worlds.builders import store
from worlds.scenarios.corpus import corpus_lines


def lines_of(pattern: str) -> list[bytes]:
    """Return the events of the recordings that match, of Spark and of others."""
    lines = []
    for folder in (recordings.FILES, recordings.FILES.parent / "others"):
        for file in sorted(folder.glob(f"{pattern}.jsonl.gz")):
            lines += gzip.decompress(file.read_bytes()).splitlines()
    return lines


# One recording of streaming queries, one of nested commands; all take a minute.
@pytest.mark.parametrize(
    "patterns", [("fan_out", "nested_ctas"), pytest.param(("*",), marks=pytest.mark.slow)]
)
def test_every_listed_job_arrives_and_no_other(
    sqlite_engine: Engine, marquez: MarquezContract, patterns: tuple[str, ...]
) -> None:
    engine = sqlite_engine
    store(engine, [*corpus_lines(), *chain.from_iterable(map(lines_of, patterns))], size=50)
    refused: list[str] = []
    target = target_called("marquez", Settings(marquez_url=marquez.url))
    export_all(engine, target, time.time(), refused.append)
    target.close()
    with engine.connect() as connection:
        now = micros_of(datetime.now(UTC))
        listed = jobs_page(connection, Filter(), now, 10_000, None)["items"]
        own_runs = run_owners.c.owner_id == run_owners.c.run_id
        ran = set(connection.scalars(select(run_owners.c.job_id).where(own_runs)))

    names = {(job["namespace"], job["name"]) for job in listed}
    arrived = set(marquez.current)
    # A listed job that did not arrive has micro-batches alone, which are runs of their query's job.
    missing = {name for name in names - arrived if id_of("job", *name) in ran}
    assert refused == []
    assert len(arrived) > 20
    assert missing == set()
    assert arrived - names == set()
