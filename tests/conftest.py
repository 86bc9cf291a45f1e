"""Real parts for the tests: stores (fixtures/stores.py), a Kafka broker.

Each starts once, at first use.

A part that this machine cannot have skips its tests with the reason; it never fails them silently.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from deploy import jars

if TYPE_CHECKING:
    from deploy.kafka import Broker
    from fixtures.emitter.secured import Certificate

ROOT = Path(__file__).resolve().parent.parent
SLOW = ROOT / "tests" / "slow"
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
pytest_plugins = ["fixtures.stores"]
BROKER_SECONDS = 1200  # the first time it is downloaded


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below tests/slow as slow."""
    for item in items:
        if SLOW in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[str]:
    """Yield the bootstrap address of a real broker.

    Topics are made on first use, so name yours after your test.
    """
    try:
        jars.fetch("kafka")
    except jars.JarsError as error:
        pytest.skip(f"no Kafka broker here: {error}")
    folder = tmp_path_factory.mktemp("kafka")
    command = [sys.executable, "-m", "deploy.kafka", str(folder)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        bootstrap = process.stdout.readline().strip()
        assert bootstrap, process.stderr.read()
        yield bootstrap
        process.communicate(timeout=60)  # closes its standard input, which stops it


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Make a certificate that only its own name makes trusted."""
    from fixtures.emitter.secured import certificate

    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, tls: Certificate) -> Iterator[Broker]:
    """Yield a broker with TLS and SCRAM."""
    from fixtures.emitter.secured import broker

    try:
        with broker(tmp_path_factory.mktemp("secured"), tls) as started:
            yield started
    except jars.JarsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def iceberg_jars() -> str:
    """Iceberg's runtime and the SQLite driver for the locked Spark, as `spark.jars` takes them."""
    try:
        return jars.comma_list(["iceberg-4.1"])
    except jars.JarsError as error:
        pytest.skip(f"no Iceberg runtime here: {error}")


@pytest.fixture(scope="session")
def java() -> str:
    """Return a `java` that Spark takes."""
    try:
        return jars.java()
    except jars.JarsError as error:
        pytest.skip(str(error))
