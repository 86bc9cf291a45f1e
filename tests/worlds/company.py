"""A small company as events, for the page.

A group of three aligned streams (one stopped), a nightly DAG with a failed
task, columns, a hostile name. All times count back from `now`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

JSON = dict[str, Any]
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET = {"_producer": "https://example.org/page", "_schemaURL": "https://example.org/page"}
LAST, STOPPED_AT, GIVEN_UP = 23, 20, 16
STREAMS = {"totals": (("orders",), "daily_totals"), "refunds": (("orders",), "refunds"),
           "balance": (("daily_totals", "refunds"), "balance")}  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)>"
MINUTE = 60.0
NIGHT = 9 * 3600.0  # how long ago the DAG began
SQL = {
    "sql": FACET
    | {
        "query": "INSERT INTO lake.shop.report SELECT c.country, sum(b.amount) AS total\n"
        "FROM lake.shop.balance b JOIN lake.shop.customers c ON b.customer = c.id\nGROUP BY c.country"
    }
}
WRONG = {
    "errorMessage": FACET
    | {
        "message": "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL "
        "instead. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nSELECT total / items FROM lake.shop.report",
        "programmingLanguage": "PYTHON",
        "stackTrace": 'Traceback (most recent call last):\n  File "margins.py", line 14, in <module>',
    }
}


class World:
    """Makes events whose times lie before `now`."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def events(self) -> list[JSON]:
        found = [
            *self.root(),
            *(one for job in STREAMS for one in self.stream(job)),
            *self.nightly(),
            *self.hostile(),
        ]
        return sorted(found, key=lambda one: str(one["eventTime"]))

    def at(self, ago: float) -> str:
        """The moment `ago` seconds before now."""
        return (self.now - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")

    def event(
        self, kind: str, ago: float, job: str, inputs: Iterable[JSON] = (), outputs: Iterable[JSON] = (),
        run: str = "", run_facets: JSON | None = None, job_facets: JSON | None = None, namespace: str = "shop",
    ) -> JSON:  # fmt: skip
        return {
            "eventType": kind,
            "eventTime": self.at(ago),
            "producer": "https://example.org/page",
            "schemaURL": SCHEMA,
            "run": {"runId": run_id(run or job), "facets": run_facets or {}},
            "job": {"namespace": namespace, "name": job, "facets": job_facets or {}},
            "inputs": list(inputs),
            "outputs": list(outputs),
        }

    def root(self) -> Iterable[JSON]:
        """The stream into the base table: each of its commits is a barrier."""
        yield self.event(
            "START", 51 * MINUTE, "ingest.orders", (), [table("orders")], run_facets=self.lease()
        )
        for barrier in range(1, LAST + 1):
            ago = self.ago(barrier)
            out = self.snapshot("orders", barrier, ago, {"barrierId": barrier})
            facets = self.lease() | self.barrier(barrier, ago + 1, ago)
            yield self.event(
                "RUNNING",
                ago,
                "ingest.orders",
                (),
                [out],
                run_facets=facets,
                job_facets=streaming(),
            )

    def root_of(self, group: str) -> JSON:
        """The first commit of a stream into a base table of a group of its own."""
        out, facets = self.snapshot(group, 1, 60, {"barrierId": 1}), self.barrier(1, 61, 60)
        facets["strandline_barrier"]["group"] = group
        return self.event(
            "RUNNING",
            60,
            group,
            (),
            [out],
            run_facets=self.lease() | facets,
            job_facets=streaming(),
        )

    def stream(self, job: str) -> Iterable[JSON]:
        """An aligned job: a checkpoint a barrier, one given up, one job stopped at a barrier."""
        reads, writes = STREAMS[job]
        name, slow = f"shop_jobs.{job}", 9.0 if job == "refunds" else 2.0
        sinks = [table(writes, columns=job != "balance")]
        yield self.event(
            "START",
            50 * MINUTE,
            name,
            [table(one) for one in reads],
            sinks,
            run_facets=self.lease(),
        )
        last = STOPPED_AT if job in ("refunds", "balance") else LAST
        for barrier in range(1, last + 1):
            if barrier == GIVEN_UP and job in ("refunds", "balance"):
                continue
            done = self.ago(barrier) - slow - (12 if job == "balance" else 0)
            inputs = [
                self.snapshot(one, barrier, None, {"barrierId": barrier}, "input") for one in reads
            ]
            output = self.snapshot(writes, barrier, done, {"barrierId": barrier})
            facets = self.lease() | self.barrier(barrier, done + slow, done)
            yield self.event(
                "RUNNING", done, name, inputs, [output], run_facets=facets, job_facets=streaming()
            )
        if job == "refunds":
            yield self.event("ABORT", self.ago(STOPPED_AT) - 30, name, run_facets=self.lease())

    def nightly(self) -> Iterable[JSON]:
        """An Airflow DAG with three tasks, of which one fails."""
        yield self.event("START", NIGHT, "nightly", namespace="airflow")
        yield from self.task("load_customers", (10, 70), [CUSTOMERS], loaded())
        yield from self.task(
            "report", (80, 200), [table("balance"), table("customers")], report(), job_facets=SQL
        )
        yield from self.task(
            "margins", (210, 220), [table("report")], table("margins"), end="FAIL", run_facets=WRONG
        )
        yield self.event("COMPLETE", NIGHT - 230, "nightly", namespace="airflow")

    def task(
        self, name: str, span: tuple[float, float], reads: Iterable[JSON], writes: JSON, end: str = "COMPLETE",
        run_facets: JSON | None = None, job_facets: JSON | None = None,
    ) -> Iterable[JSON]:  # fmt: skip
        """A task of the DAG, from its start to its end in seconds after the DAG's."""
        job = {"namespace": "airflow", "name": "nightly"}
        parent = {"parent": FACET | {"run": {"runId": run_id("nightly")}, "job": job}}
        for kind, after, facets in (("START", span[0], {}), (end, span[1], run_facets or {})):
            yield self.event(
                kind, NIGHT - after, f"nightly.{name}", reads, [writes], run_facets=parent | facets,
                job_facets=job_facets, namespace="airflow",
            )  # fmt: skip

    def hostile(self) -> Iterable[JSON]:
        """Names that a page must show as text."""
        odd = {"namespace": "file", "name": f"/lake/{HOSTILE}", "facets": {}}
        yield self.event("COMPLETE", 600, f"odd {HOSTILE}", [table("customers")], [odd])

    def ago(self, barrier: int) -> float:
        """Return the age of a barrier: one is born each two minutes."""
        return (LAST - barrier) * 2 * MINUTE + 90

    def lease(self) -> JSON:
        return {"strandline_heartbeat": FACET | {"timeoutSeconds": 600}}

    def barrier(self, barrier: int, started: float, committed: float) -> JSON:
        return {"strandline_barrier": FACET | {
            "group": "shop", "barrierId": barrier, "engine": "spark", "queryId": "q", "batchId": barrier - 1,
            "phase": "committed", "startedAt": self.at(started), "committedAt": self.at(committed)}}  # fmt: skip

    def snapshot(
        self, name: str, number: int, ago: float | None, more: JSON, direction: str = "output"
    ) -> JSON:
        content: JSON = {"format": "iceberg", "snapshotId": snapshot_id(name, number)} | more
        if ago is not None:
            content |= {
                "committedAt": self.at(ago),
                "operation": "append",
                "numberOfRows": 40 + number,
            }
        if direction == "output" and number > 1:
            passed = number - 1 == GIVEN_UP and name in ("refunds", "balance")
            content["parentSnapshotId"] = snapshot_id(name, number - (2 if passed else 1))
        return table(name) | {f"{direction}Facets": {"strandline_snapshot": FACET | content}}


def run_id(name: str) -> str:
    """The id of a job's only run."""
    return str(uuid5(NAMESPACE_URL, f"page/{name}"))


def snapshot_id(name: str, number: int) -> str:
    """An id beyond 2^53, as Iceberg has them."""
    return str(7_000_000_000_000_000_000 + sum(map(ord, name)) * 1_000_003 + number)


def streaming() -> JSON:
    """The job type of a streaming query."""
    return {
        "jobType": FACET
        | {
            "processingType": "STREAMING",
            "integration": "SPARK",
            "emissionPattern": {"processing": "COMPLETE_SNAPSHOT"},
        }
    }


def schema(*fields: str) -> JSON:
    return {"schema": FACET | {"fields": [{"name": name, "type": "string"} for name in fields]}}


def table(
    name: str,
    fields: Iterable[str] = (),
    lineage: Mapping[str, list[tuple[JSON, str, str]]] | None = None,
    columns: bool = False,
) -> JSON:
    """A table of the lake, named as Spark names it."""
    symlink = {"namespace": "file:/lake", "name": f"shop.{name}", "type": "TABLE"}
    facets: JSON = {
        "symlinks": FACET | {"identifiers": [symlink]},
        "catalog": FACET | {"name": "lake", "framework": "iceberg", "type": "jdbc"},
    }
    if columns:
        fields = ("customer", "amount")
        lineage = {
            one: [({"namespace": "file", "name": "/lake/shop/orders"}, one, "IDENTITY")]
            for one in fields
        }
    if fields:
        facets |= schema(*fields)
    if lineage:
        facets["columnLineage"] = FACET | {
            "fields": {
                column: {"inputFields": [origin(*one) for one in found]}
                for column, found in lineage.items()
            }
        }
    return {"namespace": "file", "name": f"/lake/shop/{name}", "facets": facets}


CUSTOMERS = {
    "namespace": "postgres://crm:5432",
    "name": "crm.public.customers",
    "facets": schema("id", "email", "country"),
}


def loaded() -> JSON:
    """The customers in the lake, column by column."""
    how = {"id": "IDENTITY", "email": "MASKED", "country": "IDENTITY"}
    return table(
        "customers", how, {column: [(CUSTOMERS, column, kind)] for column, kind in how.items()}
    )


def report() -> JSON:
    """The report: one column as it is, one summed over a join."""
    total = [(table("balance"), "amount", "AGGREGATION"), (table("customers"), "id", "JOIN")]
    return table(
        "report",
        ("country", "total"),
        {"country": [(table("customers"), "country", "IDENTITY")], "total": total},
    )


def origin(source: JSON, column: str, how: str) -> JSON:
    kind = "INDIRECT" if how in ("JOIN", "FILTER") else "DIRECT"
    step: JSON = {
        "type": kind,
        "subtype": "TRANSFORMATION" if how == "MASKED" else how,
        "description": "",
    }
    step["masking"] = how == "MASKED"
    return {
        "namespace": source["namespace"],
        "name": source["name"],
        "field": column,
        "transformations": [step],
    }
