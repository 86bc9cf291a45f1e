"""Fixtures: target catalogs, and exports that a test drives step by step."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.datahub import DataHubContract
from fixtures.contract_servers.marquez import MarquezContract
from fixtures.contract_servers.server import ContractServer
from fixtures.sqlite_first import database_url, own_database_url
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings

__all__ = ["database_url", "own_database_url"]


@pytest.fixture
def marquez() -> Iterator[MarquezContract]:
    server = MarquezContract()
    yield server
    server.close()


@pytest.fixture
def datahub() -> Iterator[DataHubContract]:
    server = DataHubContract()
    yield server
    server.close()


@pytest.fixture
def anybody() -> Iterator[ContractServer]:
    server = ContractServer()
    yield server
    server.close()


Export = Callable[..., Exporting]
COLUMNS = {
    "fields": {
        "total": {
            "inputFields": [
                {
                    "namespace": "hive://lake",
                    "name": "db.a",
                    "field": "amount",
                    "transformations": [
                        {"type": "DIRECT", "subtype": "AGGREGATION", "description": "SUM(amount)"}
                    ],
                }
            ]
        }
    }
}


@pytest.fixture
def exporting(engine: Engine) -> Iterator[Export]:
    """Yield a function that makes a registered Exporting of settings."""
    made: list[Exporting] = []

    def make(now: float = 0.0, **settings: Any) -> Exporting:
        found = Exporting(
            engine,
            targets_of(Settings(**settings)),
            lambda why: None,
            settings.pop("max_waiting", 200_000),
        )
        found.register(now)
        made.append(found)
        return found

    yield make
    for one in made:
        for delivery in one.deliveries:
            delivery.target.close()
