"""Output of versions, late, expire, rollback and retire, word for word."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from fixtures.versions_server.events import appended, committed, ended, facet, started
from fixtures.versions_server.server import running
from strandline.cli import main
from strandline.store.sql.engine import make_engine

Strandline = Callable[..., list[str]]
TRANSFERS = {"namespace": "file:/lake", "name": "bank.transfers", "type": "TABLE"}
CATALOG = {"name": "lake", "framework": "iceberg", "type": "hadoop"}


@pytest.fixture
def strandline(database_url: str, capsys: pytest.CaptureFixture[str]) -> Strandline:
    """Return a function that runs a command on the bank, where debits stopped at barrier 2.

    The lines that it prints, spans of time as N.
    """
    engine = make_engine(database_url)
    with running(engine) as server:
        server.post(
            started("transfers", 0, [], ["bank.transfers"], group="bank"),
            started("credits", 0, ["bank.transfers"], ["bank.credits"], group="bank"),
            started("debits", 0, ["bank.transfers"], ["bank.debits"], group="bank"),
            appended("batch", 1, "bank.lookup", "l1"),
        )
        for b in (1, 2, 3):
            before = {"bank.transfers": f"t{b - 1}", "bank.credits": f"c{b - 1}"} if b > 1 else {}
            made = {"bank.transfers": f"t{b}"}
            server.post(
                committed("transfers", 10 * b, b, {}, made, group="bank", parents=before),
                committed(
                    "credits",
                    10 * b + 2,
                    b,
                    made,
                    {"bank.credits": f"c{b}"},
                    group="bank",
                    parents=before,
                ),
            )
            if b < 3:
                server.post(
                    committed("debits", 10 * b + 4, b, made, {"bank.debits": f"d{b}"}, group="bank")
                )
        server.post(ended("debits", 25, "FAIL"))
    engine.dispose()

    def run(*arguments: str, code: int = 0) -> list[str]:
        assert main([*arguments, "--database-url", database_url], {}) == code
        said = capsys.readouterr()
        return re.sub(r"(?<![.\d])\d+ (s|min|h|d)\b", "N", said.out or said.err).splitlines()

    return run


def test_versions_shows_matching_snapshots_and_the_blocking_job(strandline: Strandline) -> None:
    assert strandline("versions", "bank.credits", "bank.debits") == [
        "strong: the newest barrier that all tables which depend on each other have completed",
        "  bank.credits  snapshot c2  barrier 2 of group bank, N behind",
        "  bank.debits   snapshot d2  barrier 2 of group bank, N behind",
        "blocked by debits: job stopped N ago; restart it, or retire it: strandline retire debits",
    ]


def test_versions_shows_weak_versions_of_the_given_tables(strandline: Strandline) -> None:
    assert strandline("versions", "--weak", "bank.credits", "bank.lookup") == [
        "weak: the newest barrier that the tables asked for have completed",
        "  bank.credits  snapshot c3  barrier 3 of group bank, nothing newer",
        "  bank.lookup   snapshot l1  untracked: its latest snapshot, without any promise",
        (
            "bank.lookup: untracked: no job that carries barriers writes it, and it is not a base"
            " table of a group; give its job the group: spark.strandline.group"
        ),
    ]
    assert strandline("versions", "--weak", "bank.debits")[-1] == (
        "blocked by debits: job stopped N ago; restart it, or retire it: strandline retire debits"
    )


def test_job_that_blocks_two_tables_is_named_once(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine(database_url)
    with running(engine) as server:
        server.post(
            started("in", 0, [], ["db.raw"], group="d"),
            started("split", 0, ["db.raw"], ["db.left", "db.right"], group="d"),
            *(committed("in", 10 * b, b, {}, {"db.raw": f"r{b}"}, group="d") for b in (1, 2)),
            committed(
                "split", 12, 1, {"db.raw": "r1"}, {"db.left": "l1", "db.right": "r1"}, group="d"
            ),
        )
    engine.dispose()

    said = []
    for command in (["versions", "db.left", "db.right"], ["late", "db.left"]):
        assert main([*command, "--database-url", database_url], {}) == 0
        said.append([line for line in capsys.readouterr().out.splitlines() if "blocked" in line])

    reason = "blocked by split: running, is at barrier 1, barrier 2 is next"
    assert said == [[reason], [f"  the version of all tables together is {reason}"]]


def test_rejection_gives_the_reason_and_an_alternative(strandline: Strandline) -> None:
    (refused,) = strandline("versions", "--strong", "bank.lookup", code=1)

    assert refused == (
        "strandline: bank.lookup: untracked: no job that carries barriers writes it, and it is not a base table of a group."
        " There is no strong answer for it; ask with --weak or --cut (consistency weak or cut)"
    )


def test_versions_gives_a_cut_where_no_strong_answer_exists(strandline: Strandline) -> None:
    head = "cut: the newest snapshots found that agree by data lineage; no barrier is promised"
    lookup = strandline("versions", "bank.lookup", "bank.credits")

    assert lookup[:3] == [
        head,
        "  bank.lookup   snapshot l1",
        "  bank.credits  snapshot c3",
    ]
    assert lookup[3].startswith("not strong: bank.lookup: untracked: no job that carries barriers")
    assert strandline("versions", "--cut", "bank.credits", "bank.debits") == [
        head,
        "  bank.credits  snapshot c2",
        "  bank.debits   snapshot d2",
    ]


def test_late_shows_the_delay_of_a_table_and_its_cause(strandline: Strandline) -> None:
    assert strandline("late", "bank.debits") == [
        "bank.debits, written by job debits: N behind, barrier 3 is missing",
        (
            "  the version of all tables together is blocked by debits: job stopped N ago; restart it, or"
            " retire it: strandline retire debits"
        ),
        "  barrier 2 took 4.0 s from its base table to this table:",
        "         0.0 s  wait  transfers -> bank.transfers",
        "         0.0 s  work  transfers -> bank.transfers",
        "         3.0 s  wait  debits -> bank.debits  <- the largest part",
        "         1.0 s  work  debits -> bank.debits",
    ]


def test_expire_lists_expirable_snapshots_and_why_the_others_stay(strandline: Strandline) -> None:
    assert strandline("expire", "bank.transfers", "--keep-barriers", "1") == [
        "bank.transfers: 1 snapshot is expirable, 2 pinned",
        "  expirable t1",
        "  pinned t2: barrier 2 is the strong version; job debits is stopped at barrier 2",
        "  pinned t3: barrier 3: the last 1 are kept for rollback; job credits runs at barrier 3; the latest snapshot",
    ]


def test_rollback_prints_a_plan_until_it_is_confirmed(strandline: Strandline) -> None:
    lines = strandline("rollback", "bank.credits", "2")

    assert lines[0] == "incremental plan back to barrier 2; then generation 2 of group bank begins"
    assert [line.strip() for line in lines[1:] if re.match(r" +\d+\. ", line)] == [
        "1. stop job credits",
        "2. roll back table bank.credits",
        "3. cut checkpoint credits",
        "4. raise generation group",
        "5. restart job credits",
    ]
    assert lines[-3:] == [
        "nothing has been changed; strandline rollback bank.credits 2 --execute executes it on Iceberg and Delta tables;",
        "by hand, where the plan raises the generation, run",
        "  strandline rollback bank.credits 2 --done",
    ]
    assert (
        "snapshot c2  barrier 2 of group bank, N behind"
        in strandline("versions", "bank.credits")[1]
    )
    assert strandline("rollback", "bank.credits", "2", "--done") == [
        "generation 2 of group bank has begun: its versions go on from barrier 2",
        "  credits still runs from its old state: stop it, and restart it as planned",
        "  not checked: bank.credits: its catalog is not known, so it cannot be reached; follow the plan by hand",
    ]
    assert "barrier 2 of group bank, generation 2" in strandline("versions", "bank.credits")[1]


def test_rollback_to_a_barrier_that_never_was_is_refused(strandline: Strandline) -> None:
    for more in ([], ["--done"]):
        assert strandline("rollback", "bank.credits", "400", *more, code=1) == [
            "strandline: bank.credits: group bank never had barrier 400; it has 1 to 3"
        ]


@pytest.fixture
def delta(database_url: str, tmp_path: Path) -> Path:
    """Return a Delta table whose versions 0, 1 and 2 carry the barriers 1, 2 and 3."""
    table = tmp_path / "credits"
    engine = make_engine(database_url)
    with running(engine) as server:
        events = [
            started("transfers", 0, [], ["bank.transfers"], group="bank"),
            started("credits", 0, ["bank.transfers"], [str(table)], group="bank"),
        ]
        for number in range(3):
            write_deltalake(table, pa.table({"amount": [number]}), mode="append")
            b, raw = number + 1, f"t{number}"
            events += [
                committed("transfers", 10 * b, b, {}, {"bank.transfers": raw}, group="bank"),
                committed(
                    "credits", 10 * b + 2, b, {"bank.transfers": raw}, {str(table): str(number)},
                    group="bank",
                ),
            ]  # fmt: skip
        for event in [one for one in events if one["job"]["name"] == "credits"]:
            (output,) = event["outputs"]
            output |= {"namespace": "file"}
            if "strandline_snapshot" in output["outputFacets"]:
                output["outputFacets"]["strandline_snapshot"]["format"] = "delta"
        server.post(*events, ended("credits", 50))
    engine.dispose()
    return table


def amounts(table: Path) -> list[int]:
    return sorted(DeltaTable(table).to_pyarrow_table()["amount"].to_pylist())


def test_delta_table_is_rolled_back_in_its_own_language_and_by_execute(
    delta: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rollback", str(delta), "2", "--database-url", database_url]

    assert main(command, {}) == 0
    plan = capsys.readouterr().out
    assert main([*command, "--execute"], {}) == 0
    executed = capsys.readouterr().out
    again = main([*command, "--execute"], {})

    assert f"RESTORE TABLE delta.`{delta}` TO VERSION AS OF 1;" in plan
    assert (
        "done when its content is that of version 1, and the table's strandline.generation is 2"
        in plan
    )
    assert "CALL" not in plan
    assert f"  {delta}: 3 rows now, 2 after: -1" in executed
    assert (amounts(delta), DeltaTable(delta).metadata().configuration) == (
        [0, 1],
        {"strandline.generation": "2"},
    )
    assert (again, "already done: generation 2" in capsys.readouterr().out) == (0, True)


def test_rollback_by_hand_is_done_when_its_conditions_hold(
    delta: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rollback", str(delta), "2", "--done", "--database-url", database_url]
    before = main(command, {})
    refused = capsys.readouterr().err
    table = DeltaTable(delta)
    table.restore(1)
    without_generation = main(command, {})
    table.alter.set_table_properties({"strandline.generation": "2"}, raise_if_not_exists=False)
    capsys.readouterr()

    assert (before, without_generation, main(command, {})) == (1, 1, 0)
    assert "the plan is not carried out: 2. roll back table" in refused
    assert "not yet: its content is that of version 1" in refused
    assert capsys.readouterr().out == (
        "generation 2 of group bank has begun: its versions go on from barrier 2\n"
    )


@pytest.mark.parametrize(("rows", "code"), [([], 0), ([9], 1)], ids=["same rows", "one more"])
def test_a_table_that_is_optimized_after_a_rollback_by_hand_has_the_same_rows(
    rows: list[int], code: int, delta: Path, database_url: str
) -> None:
    table = DeltaTable(delta)
    table.restore(1)
    for row in rows:
        write_deltalake(table, pa.table({"amount": [row]}), mode="append")
    table.optimize.compact()
    table.alter.set_table_properties({"strandline.generation": "2"}, raise_if_not_exists=False)

    assert len(table.file_uris()) == 1
    assert main(["rollback", str(delta), "2", "--done", "--database-url", database_url], {}) == code
    assert amounts(delta) == [0, 1, *rows]


def test_lost_state_clears_a_delta_table(
    delta: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rollback", str(delta), "2", "--lost-state", "credits", "--execute"]

    assert main([*command, "--database-url", database_url], {}) == 0, capsys.readouterr()
    assert amounts(delta) == []


def test_retire_accepts_stopped_jobs_only(strandline: Strandline) -> None:
    (refused,) = strandline("retire", "credits", code=1)
    assert refused.startswith("strandline: credits is running (run ")
    assert refused.endswith("); stop it first, or pass --even-if-running")
    assert strandline("retire", "debits") == [
        "debits is retired: it no longer blocks versions or pins snapshots",
        "  bank.debits: no newer strong versions until a job with barriers writes it again",
    ]
    assert strandline("versions", "bank.credits")[1] == (
        "  bank.credits  snapshot c3  barrier 3 of group bank, nothing newer"
    )


def test_table_of_a_retired_job_is_called_untracked_even_without_lag(
    strandline: Strandline,
) -> None:
    strandline("retire", "credits", "--even-if-running")

    assert strandline("versions", "bank.credits")[1:] == [
        "  bank.credits  snapshot c3  barrier 3 of group bank, nothing newer",
        "bank.credits: untracked: its writer credits was retired",
    ]


def test_retire_accepts_a_lost_job_that_no_server_has_noted(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine(database_url)
    with running(engine) as server:
        start = started("ingest", 0, [], ["bank.transfers"], group="bank")
        start["run"]["facets"]["strandline_heartbeat"] = facet({"timeoutSeconds": 60})
        server.post(start)
    engine.dispose()
    in_two_minutes = time.time() + 120
    monkeypatch.setattr(time, "time", lambda: in_two_minutes)

    assert main(["retire", "ingest", "--database-url", database_url], {}) == 0
    assert capsys.readouterr().out.startswith("ingest is retired")


def test_tables_are_shown_by_their_catalog_names(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine(database_url)
    with running(engine) as server:
        facets = {"symlinks": facet({"identifiers": [TRANSFERS]}), "catalog": facet(CATALOG)}
        start = started("ingest", 0, [], ["/lake/bank/transfers"], group="bank")
        commit = committed("ingest", 10, 1, {}, {"/lake/bank/transfers": "t1"}, group="bank")
        for event in (start, commit):
            event["outputs"][0] |= {"namespace": "file", "facets": facets}
        server.post(start, commit)
    engine.dispose()

    assert main(["versions", "lake.bank.transfers", "--database-url", database_url], {}) == 0
    assert "\n  lake.bank.transfers  snapshot t1  barrier 1" in capsys.readouterr().out
    assert main(["rollback", "lake.bank.transfers", "1", "--database-url", database_url], {}) == 0
    assert "roll back table lake.bank.transfers" in capsys.readouterr().out
    assert main(["late", "lake.bank.transfers", "--database-url", database_url], {}) == 0
    assert capsys.readouterr().out.startswith("lake.bank.transfers, written by job ingest: ")


def test_versions_commands_print_json(strandline: Strandline) -> None:
    answer = json.loads("\n".join(strandline("versions", "bank.credits", "--json")))

    assert [(one["name"], one["snapshotId"], one["barrier"]) for one in answer["tables"]] == [
        ("bank.credits", "c2", 2)
    ]
    assert [one["state"] for one in answer["blockedBy"]] == ["STOPPED"]


def test_catalog_options_can_be_set_listed_and_reset(strandline: Strandline) -> None:
    assert strandline("catalog-options") == [
        "no catalog has an option: table-lineage and data-lineage are on"
    ]
    assert strandline("catalog-options", "lake", "table-lineage=false", "owner=bank") == [
        "lake  owner=bank",
        "lake  table-lineage=false",
    ]
    assert strandline("catalog-options", "lake", "owner=") == ["lake  table-lineage=false"]
    assert strandline("catalog-options", "lake", "data-lineage=off", code=1) == [
        "strandline: data-lineage: 'off' is not one of true, false"
    ]
