"""Lakes whose tables a collector knows: credits is one barrier ahead of debits and balance.

`known_bank` is one for all tests that only read; a test that writes has `own_bank`, or tables of
its own in `bank`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def collector_of(spark: Any, url: str) -> Iterator[str]:
    """Name a collector in the session's conf."""
    spark.conf.set("spark.strandline.collector.url", url)
    yield url
    spark.conf.unset("spark.strandline.collector.url")


@pytest.fixture
def collector(bank: Any, sqlite_url: str) -> Iterator[str]:
    """The address of a collector of the test's own, which is in the session's conf."""
    from fixtures.servers import serving
    from strandline.store.sql.engine import make_engine

    engine = make_engine(sqlite_url)
    with serving(engine) as url, collector_of(bank.spark, url):
        yield url
    engine.dispose()


@pytest.fixture
def own_bank(bank: Any, collector: str) -> Any:
    """A reported bank that the test may change."""
    report_bank(bank, collector)
    return bank


@pytest.fixture(scope="session")
def reported_bank(
    lake: Any, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The bank that `known_bank` shares, and the address of its collector."""
    from fixtures.servers import serving
    from strandline.store.sql.engine import make_engine
    from worlds.lake import bank_in

    folder = tmp_path_factory.mktemp("known_bank")
    (folder / "strandline.db").write_bytes(sqlite_template.read_bytes())
    engine = make_engine(f"sqlite:///{folder}/strandline.db")
    with serving(engine) as url, bank_in(lake, folder) as bank:
        report_bank(bank, url)
        yield bank, url
    engine.dispose()


@pytest.fixture
def known_bank(reported_bank: Any) -> Iterator[Any]:
    """A reported bank to read only, whose collector is in the session's conf."""
    bank, url = reported_bank
    with collector_of(bank.spark, url):
        yield bank


def report_bank(bank: Any, url: str) -> None:
    """Let barrier 1 go through to balance and barrier 2 reach credits only, and report both to a collector."""
    from worlds.lake import report_commits

    tables = ("credits", "debits", "balance")
    for table in tables:
        bank.table(table)
    made = {
        bank.name(table): bank.commit(table, 1, (number, 10))
        for number, table in enumerate(tables[:2], 1)
    }
    bank.commit("balance", 1, (1, 10), (2, -10), **{"strandline.inputs": json.dumps(made)})
    for table in tables:
        report_commits(bank, url, f"bank_{table}", table, "bank")
    bank.commit("credits", 2, (1, 5))
    report_commits(bank, url, "bank_credits", "credits", "bank")


@contextmanager
def read_strong(spark: Any) -> Iterator[None]:
    """Let `sql` follow the conf of the catalog `lake`, which says strong."""
    from strandline_spark.consistency.reading.conf import disobey, obey

    obey()
    spark.conf.set("spark.strandline.catalog.lake.consistency", "strong")
    yield
    spark.conf.unset("spark.strandline.catalog.lake.consistency")
    disobey()


@pytest.fixture
def strong_session(known_bank: Any) -> Iterator[Any]:
    """The bank to read only, under a conf that says strong."""
    with read_strong(known_bank.spark):
        yield known_bank


@pytest.fixture
def own_strong_session(own_bank: Any) -> Iterator[Any]:
    """A bank of the test's own, under a conf that says strong."""
    with read_strong(own_bank.spark):
        yield own_bank
