"""Plain jobs over HTTP: barriers derived from the snapshots in their events."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from fixtures.versions_server.events import (
    LAKE,
    barrier_facet,
    committed,
    dataset,
    event,
    facet,
    moment,
    started,
)
from fixtures.versions_server.server import Server

JSON = dict[str, Any]
RAW, COPY, OTHER, BOTH = "db.raw", "db.copy", "db.other", "db.both"
BATCH = {"jobType": facet({"processingType": "BATCH", "integration": "SPARK"})}
GROUP = {"strandline_barrier": facet({"group": "plain", "engine": "spark"})}


@pytest.fixture
def lake(server: Server) -> Server:
    """A base table whose micro-batches are barriers, and two plain streams from it."""
    server.post(
        started("ingest", 0, [], [RAW], group="plain"),
        started("copy", 1, [RAW], [COPY], group="plain"),
        started("other", 2, [RAW], [OTHER], group="plain"),
    )
    for barrier in range(1, 7):
        server.post(
            committed("ingest", 10 * barrier, barrier, {}, {RAW: f"r{barrier}"}, group="plain")
        )
    return server


def micro_batch(
    job: str,
    number: int,
    reads: Mapping[str, str | JSON],
    writes: Mapping[str, str | JSON],
    at: float | None = None,
    run: int = 1,
    **more: Any,
) -> JSON:
    """RUNNING of a plain stream: no barrier, only which micro-batch it was and what it consumed."""
    at = 100.0 + number if at is None else at
    facets = barrier_facet("plain", None, at - 1, at, batchId=number, **more)
    inputs = [dataset(name, "input", _snapshot(one)) for name, one in reads.items()]
    outputs = [
        dataset(name, "output", {"committedAt": moment(at), **_snapshot(one)})
        for name, one in writes.items()
    ]
    return event("RUNNING", job, at, run=run, run_facets=facets, inputs=inputs, outputs=outputs)


def _snapshot(one: str | JSON) -> JSON:
    return {"snapshotId": one} if isinstance(one, str) else one


def batch_run(
    job: str,
    run: int,
    at: float,
    reads: Mapping[str, str],
    writes: Mapping[str, str | JSON],
    parent: str | None = None,
) -> list[JSON]:
    """START and COMPLETE of a batch run of the group that reads whole tables and replaces one."""
    made = {"committedAt": moment(at), **({"parentSnapshotId": parent} if parent else {})}
    inputs = [dataset(name, "input", {"snapshotId": one}) for name, one in reads.items()]
    outputs = [
        dataset(name, "output", {"replacesTable": True} | made | _snapshot(one))
        for name, one in writes.items()
    ]
    start = started(job, at - 1, list(reads), list(writes), group="plain", run=run)
    end = event("COMPLETE", job, at, run=run, run_facets=GROUP, inputs=inputs, outputs=outputs)
    for one in (start, end):
        one["job"]["facets"] = BATCH
    return [start, end]


def test_micro_batch_number_is_not_its_barrier(lake: Server) -> None:
    """Three micro-batches that read two commits each stand at barriers 2, 4 and 6."""
    for number in range(3):
        snapshot = f"r{2 * number + 2}"
        lake.post(micro_batch("copy", number, {RAW: snapshot}, {COPY: f"c{number}"}))
    for number in range(4):
        lake.post(micro_batch("other", number, {RAW: f"r{number + 1}"}, {OTHER: f"o{number}"}))

    assert lake.snapshots(RAW, COPY, OTHER) == {RAW: "r4", COPY: "c1", OTHER: "o3"}
    assert lake.barriers(RAW, COPY, OTHER) == dict.fromkeys((RAW, COPY, OTHER), 4)
    assert lake.barriers(COPY, consistency="weak") == {COPY: 6}


def test_micro_batches_before_the_first_that_is_recorded_are_not_known_to_be_whole(
    lake: Server,
) -> None:
    lake.post(
        micro_batch("copy", 7, {RAW: {"snapshotId": "r3", "fromSnapshotId": "r2"}}, {COPY: "c7"})
    )
    answer = lake.versions(RAW, COPY, consistency="strong", status=409)

    assert answer["code"] == "no_version"
    assert "copy: db.copy: micro-batches before this one are not recorded" in answer["detail"]


def read(start: str | None, end: str, **more: Any) -> JSON:
    """An incremental read from a snapshot, exclusive, up to another one."""
    return {"snapshotId": end} | ({"fromSnapshotId": start} if start else {}) | more


def on(parent: str | None, snapshot: str, **more: Any) -> JSON:
    """A commit on top of a snapshot."""
    return {"snapshotId": snapshot} | ({"parentSnapshotId": parent} if parent else {}) | more


def test_stream_that_began_in_the_middle_is_complete_once_its_table_is_replaced(
    lake: Server,
) -> None:
    lake.post(micro_batch("copy", 0, {RAW: read("r2", "r3")}, {COPY: on(None, "c0")}))
    midway = lake.versions(RAW, COPY, consistency="strong", status=409)
    lake.post(*batch_run("load", 1, 200, {RAW: "r4"}, {COPY: "c1"}, parent="c0"))
    lake.post(micro_batch("copy", 1, {RAW: read("r4", "r5")}, {COPY: on("c1", "c2")}, 210))

    assert "copy: db.copy: its stream began in the middle of db.raw" in midway["detail"]
    assert "replace the whole table" in midway["detail"]
    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c2"}


def test_initial_load_and_then_a_stream_from_exactly_there(lake: Server) -> None:
    lake.post(*batch_run("load", 1, 90, {RAW: "r3"}, {COPY: "c0"}))
    loaded = lake.snapshots(RAW, COPY)
    lake.post(micro_batch("copy", 0, {RAW: read("r3", "r5")}, {COPY: on("c0", "c1")}))
    lake.post(*batch_run("load", 2, 90, {RAW: "r3"}, {OTHER: "o0"}))
    lake.post(micro_batch("other", 0, {RAW: read("r4", "r5")}, {OTHER: on("o0", "o1")}))

    assert loaded == {RAW: "r3", COPY: "c0"}
    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c1"}
    assert lake.snapshots(RAW, OTHER, consistency="weak") == {RAW: "r3", OTHER: "o0"}


def test_stream_that_passed_over_deletes_completes_nothing_until_its_table_is_replaced(
    lake: Server,
) -> None:
    skipped = read("r2", "r4", skippedChanges=True)
    lake.post(
        micro_batch("copy", 0, {RAW: read(None, "r2")}, {COPY: on(None, "c0")}),
        micro_batch("copy", 1, {RAW: skipped}, {COPY: on("c0", "c1")}),
        micro_batch("copy", 2, {RAW: read("r4", "r5")}, {COPY: on("c1", "c2")}),
    )
    broken = lake.versions(RAW, COPY)
    lake.post(*batch_run("load", 1, 200, {RAW: "r5"}, {COPY: "c3"}, parent="c2"))

    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c3"}
    assert [one["snapshotId"] for one in broken["tables"]] == ["r2", "c0"]
    (holder,) = broken["blockedBy"]
    assert holder["reason"] == (
        "copy: db.copy: its stream passed over changes of db.raw; replace the whole table"
    )


def test_restored_output_continues_only_with_its_checkpoint(
    lake: Server,
) -> None:
    for job, table in (("copy", COPY), ("other", OTHER)):
        for number in range(2):
            start = f"r{number}" if number else None
            made = on(f"{job}{number - 1}" if number else None, f"{job}{number}")
            lake.post(micro_batch(job, number, {RAW: read(start, f"r{number + 1}")}, {table: made}))
    anew = micro_batch("copy", 1, {RAW: read("r1", "r3")}, {COPY: on("copy0", "copy2")}, 150, run=2)
    lake.post(started("copy", 140, [RAW], [COPY], group="plain", run=2), anew)
    lake.post(micro_batch("other", 2, {RAW: read("r2", "r3")}, {OTHER: on("other0", "other2")}))

    assert lake.snapshots(RAW, COPY) == {RAW: "r3", COPY: "copy2"}
    assert lake.snapshots(RAW, OTHER) == {RAW: "r2", OTHER: "other1"}


@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
def test_stream_continues_after_compaction_and_foreign_delete(lake: Server, *, late: bool) -> None:
    """Jobs of no group compacted its table and deleted rows of it; both stand where it stood."""
    compaction = event(
        "COMPLETE",
        "maintenance",
        110,
        outputs=[dataset(COPY, "output", on("c0", "c0x", operation="replace"))],
    )
    deletion = event(
        "COMPLETE",
        "forget",
        111,
        run=2,
        outputs=[dataset(COPY, "output", on("c0x", "c0y", operation="delete"))],
    )
    after = micro_batch("copy", 1, {RAW: read("r2", "r5")}, {COPY: on("c0y", "c1")}, 120)
    lake.post(micro_batch("copy", 0, {RAW: read(None, "r2")}, {COPY: on(None, "c0")}))
    lake.post(*([after, compaction, deletion] if late else [compaction, deletion, after]))

    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c1"}


def test_stream_over_an_unreported_commit_completes_nothing(lake: Server) -> None:
    lake.post(micro_batch("copy", 0, {RAW: read(None, "r2")}, {COPY: on(None, "c0")}))
    lake.post(micro_batch("copy", 1, {RAW: read("r2", "r5")}, {COPY: on("c0x", "c1")}))
    answer = lake.versions(RAW, COPY)

    assert [one["snapshotId"] for one in answer["tables"]] == ["r2", "c0"]
    assert "snapshot c0x of it is not recorded" in answer["blockedBy"][0]["reason"]


def test_rerun_that_replaced_a_table_and_what_still_shows_the_run_before_agree(
    lake: Server,
) -> None:
    """Both runs are candidates of barrier 3; an answer takes those that belong together."""
    lake.post(*batch_run("report", 1, 200, {RAW: "r3"}, {BOTH: "b1"}))
    lake.post(*batch_run("report", 2, 220, {RAW: "r3"}, {BOTH: "b2"}))
    alone = lake.snapshots(RAW, BOTH)
    lake.post(*batch_run("sums", 1, 210, {BOTH: "b1"}, {"db.sums": "s1"}))

    assert alone == lake.snapshots(RAW, BOTH) == {RAW: "r3", BOTH: "b2"}
    assert lake.snapshots(RAW, BOTH, "db.sums") == {RAW: "r3", BOTH: "b1", "db.sums": "s1"}


def test_stream_that_starts_counts_from_the_next_barrier_on(lake: Server) -> None:
    """`copy` stays at 2; `other`, which came later, answers at once and is not held back."""
    lake.post(micro_batch("copy", 0, {RAW: read(None, "r2")}, {COPY: on(None, "c0")}))
    lake.post(micro_batch("other", 0, {RAW: read(None, "r6")}, {OTHER: on(None, "o0")}))
    lake.post(committed("ingest", 300, 7, {}, {RAW: "r7"}, group="plain"))
    lake.post(micro_batch("other", 1, {RAW: read("r6", "r7")}, {OTHER: on("o0", "o1")}, 310))
    answer = lake.versions(OTHER)

    assert lake.barriers(OTHER) == {OTHER: 6}
    assert [one["job"]["name"] for one in answer["blockedBy"]] == ["copy"]


def test_observed_snapshot_derives_no_barrier(lake: Server) -> None:
    lake.post(micro_batch("copy", 0, {RAW: {"snapshotId": "r3", "observed": True}}, {COPY: "c0"}))

    assert lake.versions(COPY, consistency="weak", status=409)["code"] == "no_version"


def test_compaction_carries_the_barrier_of_its_parent(lake: Server) -> None:
    compacted = {"snapshotId": "r3x", "parentSnapshotId": "r3", "operation": "replace"}
    lake.post(micro_batch("copy", 0, {RAW: compacted}, {COPY: "c0"}))

    assert lake.snapshots(COPY, consistency="weak") == {COPY: "c0"}


def test_compaction_reported_late_has_the_barrier_of_its_parent(lake: Server) -> None:
    """Neither the stream nor the batch run that read it knew whose rows it shows."""
    lake.post(micro_batch("copy", 0, {RAW: "r3x"}, {COPY: "c0"}))
    lake.post(*batch_run("report", 1, 200, {RAW: "r3x"}, {BOTH: "b1"}))
    compacted = {"snapshotId": "r3x", "parentSnapshotId": "r3", "operation": "replace"}
    lake.post(event("COMPLETE", "compact", 90, outputs=[dataset(RAW, "output", compacted)]))

    assert lake.snapshots(COPY, BOTH, consistency="weak") == {COPY: "c0", BOTH: "b1"}


def test_repeated_compaction_carries_the_barrier_of_the_first_parent(lake: Server) -> None:
    first = {"snapshotId": "r3x", "parentSnapshotId": "r3", "operation": "replace"}
    second = {
        "snapshotId": "r3y",
        "parentSnapshotId": "r3x",
        "operation": "replace",
        "sameRowsAs": [first],
    }
    lake.post(micro_batch("copy", 0, {RAW: second}, {COPY: "c0"}))

    assert lake.snapshots(COPY, consistency="weak") == {COPY: "c0"}


def test_stream_on_an_ungrouped_table_has_no_barrier_unless_it_is_a_lookup(lake: Server) -> None:
    both = {RAW: "r2", "db.rates": "x1"}
    lake.post(micro_batch("copy", 0, both, {COPY: "c0"}))
    lookups = [{"namespace": "iceberg://lake", "name": "db.rates"}]
    lake.post(micro_batch("other", 0, both, {OTHER: "o0"}, lookups=lookups))

    assert lake.versions(COPY, consistency="weak", status=409)["code"] == "no_version"
    assert lake.barriers(OTHER, consistency="weak") == {OTHER: 2}


def test_batch_run_completes_the_barrier_at_which_all_inputs_stood(lake: Server) -> None:
    lake.post(
        micro_batch("copy", 0, {RAW: "r2"}, {COPY: "c0"}),
        micro_batch("copy", 1, {RAW: "r5"}, {COPY: "c1"}),
    )
    lake.post(*batch_run("report", 1, 200, {RAW: "r3", COPY: "c0"}, {BOTH: "b1"}))
    before = lake.versions(BOTH, consistency="weak", status=409)

    lake.post(*batch_run("report", 2, 300, {RAW: "r5", COPY: "c1"}, {BOTH: "b2"}, parent="b1"))

    assert before["code"] == "no_version"
    assert lake.snapshots(RAW, COPY, BOTH, consistency="weak") == {
        RAW: "r5",
        COPY: "c1",
        BOTH: "b2",
    }


@pytest.mark.parametrize(
    ("said", "barrier"),
    [
        ({}, None),
        ({"replacesTable": False, "operation": "overwrite"}, None),
        ({"replacesTable": True, "operation": "overwrite"}, 3),
        ({"replacesTable": False, "operation": "append", "completes": True}, 3),
        ({"operation": "CREATE OR REPLACE TABLE AS SELECT", "format": "delta"}, 3),
    ],
)
def test_a_batch_run_completes_barriers_where_it_replaced_the_table(
    lake: Server, said: JSON, barrier: int | None
) -> None:
    start, end = batch_run("report", 1, 200, {RAW: "r3"}, {BOTH: "b1"})
    made = end["outputs"][0]["outputFacets"]["strandline_snapshot"]
    made.pop("replacesTable")
    made |= said
    lake.post(start, end)

    if barrier is None:
        assert lake.versions(RAW, BOTH, consistency="weak", status=409)["code"] == "no_version"
    else:
        assert lake.barriers(RAW, BOTH, consistency="weak") == {RAW: barrier, BOTH: barrier}
    assert lake.barriers(RAW, consistency="weak") == {RAW: 6}


def test_each_partition_of_a_table_completes_nothing_and_a_rerun_of_all_does(lake: Server) -> None:
    for number in (1, 2, 3):
        part = {"snapshotId": f"b{number}", "replacesTable": False, "operation": "overwrite"}
        lake.post(*batch_run("report", number, 200 + 10 * number, {RAW: "r3"}, {BOTH: part}))
    in_parts = lake.versions(RAW, BOTH, consistency="weak", status=409)
    for number in (4, 5):
        lake.post(*batch_run("report", number, 300 + number, {RAW: "r3"}, {BOTH: f"b{number}"}))

    assert in_parts["code"] == "no_version"
    assert lake.snapshots(RAW, BOTH, consistency="weak") == {RAW: "r3", BOTH: "b5"}


def test_a_rerun_after_others_read_the_table_waits_for_the_next_barrier(lake: Server) -> None:
    """`db.sums` shows b1, so barrier 3 stays at b1; both have the next one anew."""
    lake.post(*batch_run("report", 1, 200, {RAW: "r3"}, {BOTH: "b1"}))
    lake.post(*batch_run("sums", 1, 210, {BOTH: "b1"}, {"db.sums": "s1"}))
    lake.post(*batch_run("report", 2, 220, {RAW: "r3"}, {BOTH: "b2"}))
    same = lake.snapshots(RAW, BOTH, "db.sums", consistency="weak")
    lake.post(*batch_run("report", 3, 230, {RAW: "r4"}, {BOTH: "b3"}))
    lake.post(*batch_run("sums", 2, 240, {BOTH: "b3"}, {"db.sums": "s2"}))

    assert same == {RAW: "r3", BOTH: "b1", "db.sums": "s1"}
    assert lake.snapshots(RAW, BOTH, "db.sums", consistency="weak") == {
        RAW: "r4",
        BOTH: "b3",
        "db.sums": "s2",
    }


def test_a_cut_shows_the_older_snapshot_that_the_last_replacement_was_made_from(
    lake: Server,
) -> None:
    lake.post(*batch_run("report", 1, 200, {RAW: "r5"}, {BOTH: "b1"}))
    lake.post(*batch_run("report", 2, 210, {RAW: "r4"}, {BOTH: "b2"}, parent="b1"))
    part = {"snapshotId": "o2", "replacesTable": False}
    lake.post(*batch_run("other", 1, 200, {RAW: "r5"}, {OTHER: "o1"}))
    lake.post(*batch_run("other", 2, 210, {RAW: "r4"}, {OTHER: part}, parent="o1"))

    assert lake.snapshots(RAW, BOTH, consistency="cut") == {RAW: "r4", BOTH: "b2"}
    assert lake.snapshots(RAW, OTHER, consistency="cut") == {RAW: "r5", OTHER: "o2"}


def test_what_a_correction_of_a_streams_table_read_constrains_no_cut(lake: Server) -> None:
    dim, part = "db.dim", {"snapshotId": "c1", "replacesTable": False}
    lake.post(*batch_run("dims", 1, 90, {}, {dim: "d1"}))
    lake.post(micro_batch("copy", 0, {RAW: read(None, "r5")}, {COPY: on(None, "c0")}))
    lake.post(*batch_run("backfill", 1, 110, {dim: "d1", RAW: "r2"}, {COPY: part}, parent="c0"))
    lake.post(*batch_run("dims", 2, 120, {}, {dim: "d2"}, parent="d1"))
    corrected = lake.snapshots(RAW, COPY, dim, consistency="cut")
    lake.post(*batch_run("load", 1, 130, {dim: "d1", RAW: "r4"}, {COPY: "c2"}, parent="c1"))

    assert corrected == {RAW: "r5", COPY: "c1", dim: "d2"}
    assert lake.snapshots(RAW, COPY, dim, consistency="cut") == {RAW: "r4", COPY: "c2", dim: "d1"}


def test_what_a_stream_looked_up_constrains_no_cut(lake: Server) -> None:
    rates = "db.rates"
    looked_up: JSON = {"lookups": [{"namespace": LAKE, "name": rates}]}
    lake.post(*batch_run("rates", 1, 90, {}, {rates: "x1"}))
    lake.post(micro_batch("copy", 0, {RAW: "r5", rates: "x1"}, {COPY: "c0"}, **looked_up))
    lake.post(micro_batch("other", 0, {RAW: "r5", rates: "x1"}, {OTHER: "o0"}))
    lake.post(*batch_run("rates", 2, 120, {}, {rates: "x2"}, parent="x1"))

    assert lake.snapshots(COPY, rates, consistency="cut") == {COPY: "c0", rates: "x2"}
    assert lake.snapshots(OTHER, rates, consistency="cut") == {OTHER: "o0", rates: "x1"}


def test_a_run_that_reads_its_own_table_counts_it_as_an_input(lake: Server) -> None:
    lake.post(*batch_run("report", 1, 200, {RAW: "r3"}, {BOTH: "b1"}))
    lake.post(*batch_run("report", 2, 210, {RAW: "r4", BOTH: "b1"}, {BOTH: "b2"}))
    from_older = lake.snapshots(RAW, BOTH, consistency="weak")
    lake.post(*batch_run("report", 3, 220, {RAW: "r4"}, {BOTH: "b3"}))
    lake.post(*batch_run("report", 4, 230, {RAW: "r4", BOTH: "b3"}, {BOTH: "b4"}))

    assert from_older == {RAW: "r3", BOTH: "b1"}
    assert lake.snapshots(RAW, BOTH, consistency="weak") == {RAW: "r4", BOTH: "b4"}


def test_a_batch_job_holds_no_stream_back_and_its_last_barrier_is_kept(server: Server) -> None:
    server.post(
        started("ingest", 0, [], [RAW], group="plain"),
        started("copy", 1, [RAW], [COPY], group="plain"),
    )
    for number in range(3):
        at, raw = 10 * number + 10, f"r{number}"
        server.post(committed("ingest", at, number + 1, {}, {RAW: raw}, group="plain"))
        server.post(micro_batch("copy", number, {RAW: raw}, {COPY: f"c{number}"}, at + 5))
    server.post(*batch_run("report", 1, 200, {COPY: "c1"}, {BOTH: "b1"}))
    answer = server.versions(RAW, COPY, BOTH)
    (holder,) = answer["blockedBy"]

    assert server.barriers(RAW, COPY) == {RAW: 3, COPY: 3}
    assert [one["snapshotId"] for one in answer["tables"]] == ["r1", "c1", "b1"]
    assert (holder["job"]["name"], holder["state"], holder["last"]) == ("report", "BATCH", 2)
    assert re.fullmatch(
        r"report: batch job, last run at barrier 2, \d+ \w+ ago; the next run decides",
        holder["reason"],
    )
    kept = server.get(f"/api/v2/expirable?namespace={LAKE}&name={COPY}")["kept"]
    assert "db.both was made at barrier 2" in [why for one in kept for why in one["reasons"]]


FILE = {"namespace": "s3://lake", "name": "exports/part"}


@pytest.mark.parametrize("of_group", [True, False], ids=["grouped", "of no group"])
@pytest.mark.parametrize("is_file", [True, False], ids=["file", "table"])
def test_an_input_without_barriers_that_was_made_from_a_base_table_lets_a_run_carry_none(
    lake: Server, *, is_file: bool, of_group: bool
) -> None:
    """A partly written table or a file in the middle shows barrier 1, the base table barrier 3."""
    part = {"snapshotId": "o1", "replacesTable": False}
    between = batch_run("between", 1, 100, {RAW: "r1"}, {OTHER: part})
    report = batch_run("report", 1, 200, {RAW: "r3", OTHER: "o1"}, {BOTH: "b1"})
    if is_file:
        for one in between:
            one["outputs"] = [FILE]
        for one in report:
            one["inputs"] = [*one["inputs"][:1], FILE]
    if not of_group:
        for one in between:
            one["run"]["facets"] = {}
    lake.post(*between, *report)

    assert lake.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


def of_no_group(job: str, at: float, reads: list[str], writes: list[str]) -> list[JSON]:
    """START and COMPLETE of a batch run of no group that tells of no snapshots."""
    events = batch_run(job, 1, at, dict.fromkeys(reads, ""), dict.fromkeys(writes, ""))
    for one in events:
        one["run"]["facets"] = {}
        for table in (*one["inputs"], *one["outputs"]):
            table.pop("inputFacets", None)
            table.pop("outputFacets", None)
    return events


@pytest.mark.parametrize("last", [2, 3], ids=["started", "ended"])
def test_late_job_without_a_group_withdraws_the_claim_of_a_run(lake: Server, last: int) -> None:
    """Of two jobs between the base table and the run's other input the first one comes late."""
    first = of_no_group("first", 100, [RAW], ["db.near"])
    second = of_no_group("second", 110, ["db.near"], ["db.far"])
    report = batch_run("report", 1, 200, {RAW: "r3", "db.far": "f1"}, {BOTH: "b1"})
    lake.post(*second, *report)
    claimed = lake.barriers(RAW, BOTH, consistency="strong")
    lake.post(*first[:1] if last == 2 else first[1:])

    assert claimed == {RAW: 3, BOTH: 3}
    assert lake.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


@pytest.mark.parametrize("is_late", [True, False], ids=["told after", "told before"])
def test_an_input_counts_from_when_it_was_made_from_a_base_table(
    lake: Server, *, is_late: bool
) -> None:
    """A run of before keeps its barrier, in whatever order events come; the next has none."""
    later = of_no_group("between", 300, [RAW], ["db.far"])
    reports = [
        batch_run("report", 1, 200, {RAW: "r3", "db.far": "f1"}, {BOTH: "b1"}),
        batch_run("report", 2, 400, {RAW: "r5", "db.far": "f2"}, {BOTH: "b2"}, parent="b1"),
    ]
    events = [*reports[0], *reports[1]]
    lake.post(*(events + later if is_late else later + events))

    assert lake.snapshots(RAW, BOTH, consistency="strong") == {RAW: "r3", BOTH: "b1"}


@pytest.mark.parametrize("group", ["plain", "another"])
def test_what_a_job_of_a_group_made_outside_of_it_counts(lake: Server, group: str) -> None:
    """`near` is of no group; what a batch job of the same group makes of it alone is neither."""
    far = batch_run("far", 1, 110, {"db.near": "n1"}, {"db.far": "f1"})
    if group == "another":
        far = batch_run("far", 1, 110, {RAW: "r1"}, {"db.far": "f1"})
    for one in far:
        one["run"]["facets"] = {"strandline_barrier": facet({"group": group, "engine": "spark"})}
    report = batch_run("report", 1, 200, {RAW: "r3", "db.far": "f1"}, {BOTH: "b1"})
    lake.post(*of_no_group("near", 100, [RAW], ["db.near"]), *far, *report)

    assert lake.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


def test_a_file_and_a_table_that_no_base_table_leads_to_constrain_nothing(lake: Server) -> None:
    report = batch_run("report", 1, 200, {RAW: "r3", "db.rates": "x1"}, {BOTH: "b1"})
    for one in report:
        one["inputs"].append(FILE)
    load = event("COMPLETE", "rates", 90, outputs=[dataset("db.rates", "output", on(None, "x1"))])
    load["inputs"] = [{"namespace": "s3://lake", "name": "rates.csv"}]
    lake.post(load, *report)

    assert lake.barriers(RAW, BOTH, consistency="strong") == {RAW: 3, BOTH: 3}


def test_a_run_that_read_a_base_table_at_an_unknown_snapshot_carries_none(lake: Server) -> None:
    start, end = batch_run("report", 1, 200, {COPY: "c0"}, {BOTH: "b1"})
    end["inputs"].append(dataset(RAW, "input"))
    lake.post(micro_batch("copy", 0, {RAW: "r2"}, {COPY: "c0"}), start, end)

    assert lake.versions(RAW, BOTH, consistency="strong", status=409)["code"] == "no_version"


def test_backfill_carries_no_barrier_and_keeps_the_table_tracked(lake: Server) -> None:
    lake.post(micro_batch("copy", 0, {RAW: "r2"}, {COPY: "c0"}))
    lake.post(*batch_run("backfill", 1, 200, {OTHER: "o9", RAW: "r6"}, {COPY: "c0b"}, parent="c0"))

    assert lake.snapshots(COPY, consistency="weak") == {COPY: "c0"}


@pytest.mark.parametrize("aside", [{"branch": "dev"}, {"staged": True}], ids=["branch", "staged"])
def test_commits_outside_main_are_no_versions_of_a_table(lake: Server, aside: JSON) -> None:
    lake.post(micro_batch("copy", 0, {RAW: "r2"}, {COPY: "c0"}))
    lake.post(*batch_run("report", 1, 200, {RAW: "r2"}, {BOTH: "b1"}))
    lake.post(micro_batch("copy", 1, {RAW: "r4"}, {COPY: {"snapshotId": "c1"} | aside}))
    lake.post(
        *batch_run("report", 2, 300, {RAW: "r4"}, {BOTH: {"snapshotId": "b2"} | aside}, parent="b1")
    )

    found = lake.snapshots(COPY, consistency="weak") | lake.snapshots(BOTH, consistency="weak")
    assert found == {COPY: "c0", BOTH: "b1"}
    assert lake.barriers(COPY, consistency="weak") | lake.barriers(BOTH, consistency="weak") == {
        COPY: 2,
        BOTH: 2,
    }


def test_commit_with_a_barrier_that_contradicts_its_inputs_is_ignored(lake: Server) -> None:
    """Earlier emitters sent micro-batch 1 as barrier 2 although it had consumed barrier 4."""
    lake.post(committed("copy", 100, 1, {RAW: "r2"}, {COPY: "c0"}, group="plain", aligned=False))
    lake.post(committed("copy", 110, 2, {RAW: "r4"}, {COPY: "c1"}, group="plain", aligned=False))

    assert lake.snapshots(RAW, COPY, consistency="weak") == {RAW: "r4", COPY: "c1"}


def test_weak_answer_shows_one_barrier_while_a_table_joins(lake: Server) -> None:
    lake.post(
        micro_batch("copy", 0, {RAW: "r6"}, {COPY: "c0"}),
        micro_batch("other", 0, {RAW: "r6"}, {OTHER: "o0"}),
    )
    lake.post(started("late", 300, [COPY], ["db.late"], group="plain"))
    lake.post(committed("ingest", 310, 7, {}, {RAW: "r7"}, group="plain"))
    lake.post(
        micro_batch("copy", 1, {RAW: "r7"}, {COPY: "c1"}),
        micro_batch("late", 0, {COPY: "c0"}, {"db.late": "l0"}),
    )

    assert lake.barriers(RAW, COPY, "db.late", consistency="weak") == dict.fromkeys(
        (RAW, COPY, "db.late"), 6
    )
