"""Each kind of subject is forgotten through the command: no row and no answer names it afterwards."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from strandline.cli import main
from worlds.builders import Json, dataset, event, run_id, store, symlink
from worlds.stored_rows import stored_rows

WORD = "zzcanary"
RUN = "7e57ca5e-0000-4000-8000-00000000aa11"
ANSWERS = (
    *("/api/v2/jobs", "/api/v2/datasets", "/api/v2/runs", "/api/v2/events", "/api/v2/namespaces"),
    *("/api/v2/dead-letters", "/api/v2/lineage/map", "/api/v1/namespaces", "/metrics"),
    *("/api/v1/events/lineage", "/api/v1/tags", "/api/v1/namespaces/tests/jobs"),
    *("/api/v1/namespaces/hive%3A%2F%2Flake/datasets", "/api/v2/search?q=etl"),
)


class Case(NamedTuple):
    """A subject as the command takes it, and the word that nobody may read afterwards."""

    arguments: tuple[str, ...]
    job: str = "etl"
    table: str = "shop.orders"
    namespace: str = "hive://lake"
    run: str | int = 2
    word: str = WORD


CASES = {
    "job": Case(("--job", "tests", f"{WORD}_load"), job=f"{WORD}_load"),
    "dataset": Case(("--dataset", "hive://lake", f"shop.{WORD}"), table=f"shop.{WORD}"),
    "namespace": Case(("--namespace", f"hive://{WORD}"), namespace=f"hive://{WORD}"),
    "run": Case(("--run", RUN), run=RUN, word=RUN),
}


def world(case: Case) -> Iterator[Json]:
    """Give events in which the subject is at every kind of place, beside others."""
    table = dataset(
        case.table,
        case.namespace,
        schema={"fields": [{"name": "amount", "type": "int"}]},
        symlinks=symlink(f"lake.{case.table}", case.namespace),
        ownership={"owners": [{"name": "team:core"}]},
    )
    fields = [{"namespace": case.namespace, "name": case.table, "field": "amount"}]
    made = dataset("shop.sums", columnLineage={"fields": {"sum": {"inputFields": fields}}})
    text = f"reads {case.namespace}.{case.table} in {case.job} run {case.run}"
    sql = {"query": f"INSERT INTO shop.sums SELECT sum(amount) FROM {case.table}"}
    above = {"run": {"runId": case.run}, "job": {"namespace": "tests", "name": case.job}}
    run = case.run if isinstance(case.run, str) else run_id(case.run)
    facets = {"custom": {"note": text}, "errorMessage": {"message": f"failed: {text}"}}
    yield event("START", run, case.job, 1, [table], [made], facets, {"sql": sql})
    yield event(
        "FAIL", run, case.job, 2, [table], [made], facets, {"documentation": {"description": text}}
    )
    yield event("START", 3, "child", 3, [made], [], {"parent": {**above, "run": {"runId": run}}})
    # The name of a job in an unrelated job's text may be anything else's, and stays.
    other = f"reads {case.namespace}.{case.table} after run {case.run}"
    yield event("START", 4, "other", 4, [table], [dataset("shop.more")], {"x": {"log": other}})
    yield event("COMPLETE", 4, "other", 5, [table], [dataset("shop.more")])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_names_a_subject_that_was_forgotten(
    engine: Engine, database_url: str, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    store(engine, world(case))
    before = [row for row, text in stored_rows(engine) if case.word in text.lower()]
    command = ["forget", *case.arguments, "--database-url", database_url]
    counted = main(command, {})
    plan = capsys.readouterr().out
    done = main([*command, "--execute"], {})
    told = capsys.readouterr().out

    assert (counted, done) == (0, 0)
    assert len({row.split()[0] for row in before}) >= 3
    assert "VACUUM FULL" in plan
    assert all(word in told for word in ("WAL", "replicas", "backups"))
    assert [row for row, text in stored_rows(engine) if case.word in text.lower()] == []
    with serving(engine) as address, client_of(address, "") as client:
        answers = {path: client.get(path) for path in ANSWERS}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(
        ANSWERS, 200
    )
    assert [path for path, answer in answers.items() if case.word in answer.text.lower()] == []
