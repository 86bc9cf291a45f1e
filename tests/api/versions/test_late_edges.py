"""What batch runs read was made from: edges that come late, and tables that were renamed."""

import pytest
from sqlalchemy import event

from api.versions.test_derived import BOTH, RAW, batch_run, of_no_group
from api.versions.test_renamed_base_table import renamed
from fixtures.versions_server.events import committed, run_id, started
from fixtures.versions_server.server import Server

FAR, NEAR = "db.far", "db.near"


def base(server: Server, table: str = RAW) -> None:
    """Fill a base table up to barrier 1."""
    server.post(
        started("ingest", 0, [], [table], group="plain"),
        committed("ingest", 10, 1, {}, {table: "r1"}, group="plain"),
    )


def test_late_edge_is_searched_for_once_for_all_runs(server: Server) -> None:
    """The runs differ in when they ended; a walk for each of them took seconds."""
    base(server)
    server.post(*of_no_group("second", 110, [NEAR], [FAR]))
    reads, outputs = {RAW: "r1", FAR: "f1"}, [f"db.o{number}" for number in range(40)]
    for number, table in enumerate(outputs):
        server.post(*batch_run(f"to_{table}", 1, 200 + number, reads, {table: "b1"}))
    assert server.barriers(RAW, *outputs, consistency="strong") == dict.fromkeys((RAW, *outputs), 1)
    walks: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "writes_of" in statement:
            walks.append(statement)

    event.listen(server.engine, "before_cursor_execute", note)
    try:
        server.post(*of_no_group("first", 100, [RAW], [NEAR]))
    finally:
        event.remove(server.engine, "before_cursor_execute", note)

    assert 0 < len(walks) < len(outputs)
    for table in outputs:
        refused = server.versions(RAW, table, consistency="strong", status=409)
        assert refused["code"] == "no_version"


@pytest.mark.parametrize("is_late", [True, False], ids=["told after", "told before"])
def test_table_in_the_middle_counts_under_its_new_name(server: Server, *, is_late: bool) -> None:
    base(server)
    between = of_no_group("between", 100, [RAW], [NEAR])
    report = batch_run("report", 1, 200, {RAW: "r1", FAR: "f1"}, {BOTH: "b1"})
    middle = [*between, renamed(NEAR, FAR, 150)]
    server.post(*([*report, *middle] if is_late else [*middle, *report]))

    assert server.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


@pytest.mark.parametrize("is_late", [True, False], ids=["told after", "told before"])
def test_base_table_counts_under_its_new_name(server: Server, *, is_late: bool) -> None:
    base(server, "db.old")
    between = of_no_group("between", 100, ["db.old"], [FAR])
    report = batch_run("report", 1, 200, {RAW: "r1", FAR: "f1"}, {BOTH: "b1"})
    rename = renamed("db.old", RAW, 150)
    server.post(*([rename, *report, *between] if is_late else [*between, rename, *report]))

    assert server.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


def test_run_over_renamed_tables_that_nothing_leads_to_carries_its_barrier(server: Server) -> None:
    base(server, "db.old")
    load = of_no_group("load", 100, [], [NEAR])
    report = batch_run("report", 1, 200, {RAW: "r1", FAR: "f1"}, {BOTH: "b1"})
    renames = renamed(NEAR, FAR, 150), renamed("db.old", RAW, 151)
    renames[1]["run"]["runId"] = run_id("rename", 2)
    server.post(*load, *renames, *report)

    assert server.barriers(RAW, BOTH, consistency="strong") == {RAW: 1, BOTH: 1}
