"""A lake of the test's own whose tables a collector knows: credits is one barrier ahead of debits and balance."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bank(lake: Any, tmp_path: Path) -> Iterator[Any]:
    """An empty namespace in the catalog `lake`; see `aligned_lake.Lake`."""
    from worlds.lake import bank_in

    with bank_in(lake, tmp_path) as bank:
        yield bank


@pytest.fixture
def collector(bank: Any, sqlite_url: str) -> Iterator[str]:
    """The address of a collector, which is in the session's conf."""
    from fixtures.servers import serving
    from strandline.store.sql.engine import make_engine

    engine = make_engine(sqlite_url)
    with serving(engine) as url:
        bank.spark.conf.set("spark.strandline.collector.url", url)
        yield url
        bank.spark.conf.unset("spark.strandline.collector.url")
    engine.dispose()


@pytest.fixture
def known(bank: Any, collector: str) -> Any:
    """Barrier 1 went through to balance; barrier 2 is in credits only."""
    from worlds.lake import tell

    tables = ("credits", "debits", "balance")
    for table in tables:
        bank.table(table)
    made = {bank.name(table): bank.commit(table, 1, (number, 10)) for number, table in enumerate(tables[:2], 1)}
    bank.commit("balance", 1, (1, 10), (2, -10), **{"strandline.inputs": json.dumps(made)})
    for table in tables:
        tell(bank, collector, f"bank_{table}", table, "bank")
    bank.commit("credits", 2, (1, 5))
    tell(bank, collector, "bank_credits", "credits", "bank")
    return bank


@pytest.fixture
def obedient(known: Any) -> Iterator[Any]:
    """A session whose `sql` follows the conf of the catalog `lake`, which says strong."""
    from strandline_spark.consistency.reading.conf import disobey, obey

    obey()
    known.spark.conf.set("spark.strandline.catalog.lake.consistency", "strong")
    yield known
    known.spark.conf.unset("spark.strandline.catalog.lake.consistency")
    disobey()
