"""Certificates are checked against the metadata of every table involved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from strandline_spark.consistency.certificates import digest, faults_of
from strandline_spark.consistency.table_identity import Identities, Identity
from worlds.lake import bank_in

pytestmark = pytest.mark.spark

JSON = dict[str, Any]


class Answer:
    """An answer over three tables with its certificate, as a collector gives both."""

    def __init__(self, bank: Any) -> None:
        self._spark = bank.spark
        identities = Identities(bank.spark)
        self.tables = {
            table: identities.of(bank.name(table)) for table in ("credits", "debits", "balance")
        }
        self.chosen: dict[str, JSON] = {
            table: {"snapshotId": bank.history(table).done[1], "barrier": 1, "inputs": []}
            for table in self.tables
        }
        self.chosen["balance"]["inputs"] = [
            {**self._pair(self.tables[table]), "snapshotId": self.chosen[table]["snapshotId"]}
            for table in ("credits", "debits")
        ]

    def _pair(self, identity: Identity) -> JSON:
        return {"namespace": identity.namespace, "name": identity.name}

    def faults(self, certified: JSON | None = None) -> list[str]:
        """Return the faults that a reader finds.

        `certified`: what the certificate says of tables, in place of the answer.
        """
        told = {
            table: {**self._pair(one), **self.chosen[table]} for table, one in self.tables.items()
        }
        entries = [{**told[table], **(certified or {}).get(table, {})} for table in self.tables]
        certificate: JSON = {"answer": list(told.values()), "entries": entries}
        certificate["digest"] = digest(certificate)
        return faults_of(
            self._spark, certificate, {self.tables[table]: one for table, one in told.items()}
        )


@pytest.fixture(scope="module")
def certified(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Credits, debits and a balance made from both at barrier 1.

    Credits has a second snapshot of barrier 2.
    """
    with bank_in(lake, tmp_path_factory.mktemp("certified")) as bank:
        for table in ("credits", "debits", "balance"):
            bank.table(table)
        made = {bank.name(table): bank.commit(table, 1, (1, 10)) for table in ("credits", "debits")}
        bank.commit("balance", 1, (1, 20), **{"strandline.inputs": json.dumps(made)})
        bank.commit("credits", 2, (1, 5))
        yield bank


@pytest.fixture
def answer(certified: Any) -> Answer:
    """An answer of the test's own over the tables, which it only reads."""
    return Answer(certified)


def test_consistent_answer_has_no_fault(answer: Answer) -> None:
    assert answer.faults() == []


@pytest.mark.parametrize("table", ["credits", "debits", "balance"])
def test_each_table_is_compared_with_the_certificate(answer: Answer, table: str) -> None:
    faults = answer.faults({table: {"barrier": 7}})

    assert any(f"{answer.tables[table].full_name} is certified at" in fault for fault in faults)


@pytest.mark.parametrize("table", ["credits", "debits", "balance"])
def test_snapshot_with_another_barrier_is_a_fault(answer: Answer, table: str) -> None:
    snapshot = answer.chosen[table]["snapshotId"]
    answer.chosen[table]["barrier"] = 2

    assert (
        f"{answer.tables[table].full_name} says that {snapshot} is barrier 1, the answer says 2"
        in answer.faults()
    )


def test_input_read_at_another_snapshot_is_a_fault(answer: Answer, certified: Any) -> None:
    credits = answer.tables["credits"].full_name
    first, second = certified.history("credits").done.values()
    answer.chosen["credits"] |= {"snapshotId": second, "barrier": 2}
    answer.chosen["balance"]["inputs"] = []

    assert answer.faults() == [
        f"{credits} was read at {first} below the answer, which has it at {second}"
    ]
