"""A view lies between the tables that its query reads and what was made by reading the view."""

from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.access.granted import Access
from strandline.core.walk import LEAST_STEPS, Direction
from strandline.execution.edge_rows import job_edge_rows
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import TableGraph
from strandline.store.questions.lineage_answers import ANSWERS
from strandline.store.sql.narrowed import narrowed
from worlds.builders import Json
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, creates, parent, run
from worlds.scenarios.taking import fill, reader, view

NOW = view("2026-11-20T12:10:00Z")


def through(table: str, *views: str, direct: bool = False, snapshot: str | None = None) -> Json:
    """A table that is read through views, and by the statement itself if `direct`."""
    facet = FACET | {
        "format": "iceberg",
        "through": [{"namespace": "db", "name": name} for name in views],
        **({"direct": True} if direct else {}),
        **({"snapshotId": snapshot} if snapshot else {}),
    }
    return {
        "namespace": "db",
        "name": table,
        "inputFacets": {"strandline_snapshot": facet},
    }


def names(answer: Any, source: str = "source", target: str = "target") -> set[str]:
    ends = [(edge[source], edge[target]) for edge in answer["edges"]]
    return {" -> ".join(end.rpartition(":")[2] for end in pair) for pair in ends}


def edges_of(engine: Engine, node: str, way: str = "both", at: View = NOW, **how: Any) -> set[str]:
    kind = "job:ns" if node.startswith("job_") else "dataset:db"
    with reader(engine) as connection:
        asked = {"node": f"{kind}:{node}", "direction": way, **how}
        return names(ANSWERS["/lineage"](connection, asked, at))


def impact_of(engine: Engine, node: str, **how: Any) -> set[str]:
    with reader(engine) as connection:
        answer = ANSWERS["/impact"](connection, {"node": f"dataset:db:{node}", **how}, NOW)
    return {item["id"].rpartition(":")[2] for item in answer["items"]}


READ = run("COMPLETE", 1, "job_a", ["v", through("t", "v")], [columns("o", x=("t", "x"))])


def test_table_is_joined_with_what_read_a_view_of_it_by_the_view_alone(engine: Engine) -> None:
    fill(engine, [READ])

    whole = {"t -> v", "v -> job_a", "job_a -> o"}
    for node, way in (("t", "downstream"), ("o", "upstream"), ("v", "both"), ("job_a", "both")):
        assert edges_of(engine, node, way) == whole
    assert edges_of(engine, "v", "upstream") == {"t -> v"}
    assert edges_of(engine, "v", "downstream") == {"v -> job_a", "job_a -> o"}
    assert edges_of(engine, "job_a", "downstream") == {"job_a -> o"}
    assert edges_of(engine, "t", depth=1) == whole


def test_edge_into_a_view_shows_the_run_that_read_it_and_says_what_it_is(engine: Engine) -> None:
    fill(engine, [READ])

    with reader(engine) as connection:
        answer = ANSWERS["/lineage"](connection, {"node": "dataset:db:o"}, NOW)
    edges = {(one["source"], one["target"]): one for one in answer["edges"]}
    into_view = edges["dataset:db:t", "dataset:db:v"]
    assert (into_view["rule"], into_view["runId"]) == ("view", "job_a-1")
    assert edges["dataset:db:v", "job:ns:job_a"]["rule"] == "columnLineage"
    assert edges["job:ns:job_a", "dataset:db:o"]["origins"] == ["dataset:db:v"]
    assert "state" not in next(node for node in answer["nodes"] if node["id"] == "dataset:db:v")
    assert answer["hidden"]["edges"] == 0


def test_impact_and_paths_lead_by_way_of_the_view(engine: Engine) -> None:
    fill(engine, [READ, run("COMPLETE", 2, "job_b", ["o"], ["last"])])

    made = {"job_a", "o", "job_b", "last"}
    assert impact_of(engine, "t") == made | {"v", "x"}
    assert impact_of(engine, "v") == made
    with reader(engine) as connection:
        asked = {"from": "dataset:db:t", "to": "dataset:db:o"}
        found = ANSWERS["/lineage/paths"](connection, asked, NOW)
        from_view = ANSWERS["/lineage/paths"](connection, asked | {"from": "dataset:db:v"}, NOW)
    assert [id_.rpartition(":")[2] for id_ in found["shortest"]] == ["t", "v", "job_a", "o"]
    assert names(found) == {"t -> v", "v -> job_a", "job_a -> o"}
    assert names(from_view) == {"v -> job_a", "job_a -> o"}


def test_column_lineage_reaches_the_tables_and_a_view_is_followed_where_it_is_asked_for(
    engine: Engine,
) -> None:
    made = columns("v", x=("t", "x"), y=("t", "y"))
    fill(engine, [run("COMPLETE", 0, "job_v", ["t"], [made]), READ])

    up = edges_of(engine, "o", "upstream", granularity="column", column="x")
    assert up == {"x -> x"}
    down = edges_of(engine, "t", "downstream", granularity="column", column="y")
    assert down == {"y -> y"}  # into the view: what read the view used x
    assert impact_of(engine, "v", column="y") >= {"o", "job_a"}
    assert "o" not in impact_of(engine, "t", column="y")


def test_view_on_a_view_lies_behind_it(engine: Engine) -> None:
    read: list[str | Json] = ["w", through("v", "w"), through("t", "v")]
    fill(engine, [run("COMPLETE", 1, "job_a", read, ["o"])])

    whole = {"t -> v", "v -> w", "w -> job_a", "job_a -> o"}
    assert edges_of(engine, "t") == edges_of(engine, "o") == edges_of(engine, "w") == whole
    assert edges_of(engine, "v", "downstream") == whole - {"t -> v"}
    assert edges_of(engine, "w", "upstream") == {"t -> v", "v -> w"}


@pytest.mark.parametrize(("outputs", "runs"), [(300, 1), (1, 300)])
def test_view_that_many_outputs_or_runs_share_hides_no_other_edge(
    engine: Engine, outputs: int, runs: int
) -> None:
    tables = [f"t{number}" for number in range(70)]
    written = [f"o{number}" for number in range(outputs)]
    read: list[str | Json] = ["v", *(through(table, "v") for table in tables)]
    fill(
        engine,
        [
            run("START", 0, "job_app"),
            *(
                run("COMPLETE", 1, "job_a", read, written, run_id=f"{n}", of_run=parent("job_app"))
                for n in range(runs)
            ),
            run("COMPLETE", 2, "job_z", ["z"], ["o0"]),
            run("COMPLETE", 3, "job_b", written, ["last"]),
        ],
    )

    assert len(tables) * outputs * runs > LEAST_STEPS
    assert edges_of(engine, "last", "upstream") == {
        *(f"{table} -> v" for table in tables),
        *("v -> job_a", "z -> job_z", "job_z -> o0", "job_b -> last"),
        *(edge for name in written for edge in (f"job_a -> {name}", f"{name} -> job_b")),
    }


def test_table_that_a_statement_also_reads_itself_keeps_its_own_edge(engine: Engine) -> None:
    read: list[str | Json] = ["v", "u", through("t", "v", "u", direct=True)]
    fill(engine, [run("COMPLETE", 1, "job_a", read, ["o"])])

    into_job = {f"{name} -> job_a" for name in ("v", "u", "t")}
    assert edges_of(engine, "o") == {"t -> v", "t -> u", "job_a -> o", *into_job}


def test_view_that_is_no_input_leaves_its_table_joined_directly(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "job_a", [through("t", "elsewhere")], ["o"])])

    assert edges_of(engine, "o") == {"t -> job_a", "job_a -> o"}


def test_query_that_writes_nothing_reads_the_view(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "job_a", ["v", through("t", "v")])])

    assert edges_of(engine, "t") == edges_of(engine, "v") == {"t -> v", "v -> job_a"}
    assert impact_of(engine, "t") == {"v", "job_a"}
    assert impact_of(engine, "t", column="x") == {"job_a"}


REPLACED = [
    run("COMPLETE", 1, "job_v", ["old"], [creates("v")]),
    run("COMPLETE", 2, "job_1", ["v", through("old", "v")], ["o1"]),
    run("COMPLETE", 3, "job_v", ["new"], [creates("v")], run_id="2"),
    run("COMPLETE", 4, "job_2", ["v", through("new", "v")], ["o2"]),
]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_readers_of_a_replaced_view_keep_its_tables_of_then(
    engine: Engine, order: tuple[int, ...]
) -> None:
    fill(engine, [REPLACED[number] for number in order])

    for table, number in (("old", 1), ("new", 2)):
        read = {f"{table} -> v", f"v -> job_{number}", f"job_{number} -> o{number}"}
        assert edges_of(engine, f"o{number}") == read
        defined = {f"{table} -> job_v", "job_v -> v"}
        assert edges_of(engine, table, "downstream") == read | defined
    assert edges_of(engine, "v", "downstream") == {
        *("v -> job_1", "job_1 -> o1", "v -> job_2", "job_2 -> o2")
    }


def test_replaced_view_joins_nothing_with_what_read_it_before(engine: Engine) -> None:
    looked = run("COMPLETE", 2, "job_look", ["v", through("old", "v")])
    fill(engine, [*REPLACED, looked])

    with reader(engine) as connection:
        asked = {"from": "dataset:db:new", "to": "dataset:db:o1"}
        assert ANSWERS["/lineage/paths"](connection, asked, NOW)["shortest"] == []
    assert impact_of(engine, "new") == {"v", "job_v", "job_2", "o2"}
    assert impact_of(engine, "new", column="x") == {"job_v", "job_2", "v", "o2"}
    assert "job_look" in impact_of(engine, "old")


def test_streaming_query_reads_the_view(engine: Engine) -> None:
    alone: Json = {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
    alone["jobType"]["emissionPattern"] = {"eventType": "COMPLETE_SNAPSHOT"}
    read: list[str | Json] = ["v", through("t", "v")]
    made = [columns("o", x=("t", "x"))]
    begun = run("START", 1, "job_a", read, made, of_job=alone)
    fill(engine, [begun, run("RUNNING", 2, "job_a", read, made, of_job=alone)])

    whole = {"t -> v", "v -> job_a", "job_a -> o"}
    assert edges_of(engine, "o") == edges_of(engine, "t") == whole
    running = view("2026-11-20T12:00:10Z", live=True)
    assert edges_of(engine, "o", at=running) == whole


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_view_shows_what_any_event_of_the_run_says(engine: Engine, order: tuple[int, ...]) -> None:
    events = [
        run("RUNNING", 1, "job_a", ["v", through("t1", "v"), through("t2", "v")], ["o"]),
        run("RUNNING", 2, "job_a", ["v", through("t1", "v")], ["o"]),
        run("COMPLETE", 3, "job_a", ["v"], ["o"]),
    ]
    fill(engine, [events[number] for number in order])

    of_t2 = {"t2 -> v", "v -> job_a", "job_a -> o"}
    assert edges_of(engine, "t2") == of_t2
    assert edges_of(engine, "o") == of_t2 | {"t1 -> v"}


def test_view_shows_sets_with_the_same_hash_prefix(engine: Engine) -> None:
    """The hashes of these two sets have the first 15 bits in common."""
    fill(
        engine,
        [
            run("RUNNING", 1, "job_a", ["v", through("t34", "v")], ["o"]),
            run("COMPLETE", 2, "job_a", ["v", through("t79", "v")], ["o"]),
        ],
    )

    assert edges_of(engine, "o") == {"t34 -> v", "t79 -> v", "v -> job_a", "job_a -> o"}


def test_view_that_a_key_may_not_see_leaves_the_table_joined(engine: Engine) -> None:
    hidden = [{"namespace": "other", "name": "v"}]
    facet = FACET | {"format": "iceberg", "through": hidden}
    table = {"namespace": "db", "name": "t", "inputFacets": {"strandline_snapshot": facet}}
    fill(engine, [run("COMPLETE", 1, "job_a", [hidden[0], table], ["o"])])

    with narrowed(engine, Access("key", frozenset(), ("db", "ns"))).connect() as connection:
        answer = ANSWERS["/lineage"](connection, {"node": "dataset:db:o"}, NOW)
    assert names(answer) == {"t -> job_a", "job_a -> o"}


def test_view_over_a_table_that_a_key_may_not_see_says_that_something_is_hidden(
    engine: Engine,
) -> None:
    table = through("t", "v") | {"namespace": "other"}
    fill(engine, [run("COMPLETE", 1, "job_a", ["v", table], ["o"])])

    with narrowed(engine, Access("key", frozenset(), ("db", "ns"))).connect() as connection:
        asked = {"node": "dataset:db:v", "direction": "upstream"}
        of_view = ANSWERS["/lineage"](connection, asked, NOW)
        of_output = ANSWERS["/lineage"](connection, {"node": "dataset:db:o"}, NOW)
    assert names(of_view) == set()
    assert (of_view["complete"], of_view["truncatedBy"]) == (False, "access")
    assert of_view["hidden"]["access"] == of_output["hidden"]["access"] == 1


def test_job_that_read_a_view_before_and_after_it_was_replaced_has_both(engine: Engine) -> None:
    first = run("COMPLETE", 1, "job_a", ["v", through("old", "v")], ["o"])
    second = run("COMPLETE", 2, "job_a", ["v", through("new", "v")], ["o"], run_id="2")
    fill(engine, [first, second])

    read = {"v -> job_a", "job_a -> o"}
    assert edges_of(engine, "o") == {"old -> v", "new -> v", *read}
    assert edges_of(engine, "o", at=view("2026-11-20T12:10:00Z", newest=True)) == {
        "new -> v",
        *read,
    }
    past = view("2026-11-20T12:00:01Z", past=True)
    assert edges_of(engine, "o", at=past) == {"old -> v", *read}


def test_reader_without_tables_of_a_view_has_those_of_its_definition(
    engine: Engine,
) -> None:
    made = run("COMPLETE", 1, "job_v", ["t"], [creates("v")])
    fill(engine, [made, run("COMPLETE", 2, "job_a", ["v"], ["o"])])

    assert edges_of(engine, "o") == {"t -> job_v", "job_v -> v", "v -> job_a", "job_a -> o"}


def test_reader_without_tables_of_a_view_has_those_of_other_readers(
    engine: Engine,
) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "job_a", ["v", through("t", "v")], ["o"]),
            run("COMPLETE", 2, "job_plain", ["v"], ["p"]),
            run("COMPLETE", 3, "job_look", ["v"]),
        ],
    )

    plain = {"t -> v", "v -> job_plain", "job_plain -> p"}
    assert edges_of(engine, "p") == edges_of(engine, "p", "upstream") == plain
    whole = plain | {"v -> job_a", "job_a -> o", "v -> job_look"}
    assert edges_of(engine, "t", "downstream") == whole
    assert edges_of(engine, "job_look") == {"t -> v", "v -> job_look"}
    assert impact_of(engine, "t") == {"v", "job_a", "o", "job_plain", "p", "job_look"}
    assert impact_of(engine, "t", column="x") == {"v", "job_a", "o", "job_plain", "p", "job_look"}
    with reader(engine) as connection:
        asked = {"from": "dataset:db:t", "to": "dataset:db:p"}
        found = ANSWERS["/lineage/paths"](connection, asked, NOW)
    assert [id_.rpartition(":")[2] for id_ in found["shortest"]] == ["t", "v", "job_plain", "p"]


@pytest.mark.parametrize("saying", ["job_a", "job_z"])
def test_view_has_its_writer_for_readers_that_do_not_say_what_it_shows(
    engine: Engine, saying: str
) -> None:
    """Whichever reader comes first."""
    other = "job_z" if saying == "job_a" else "job_a"
    fill(
        engine,
        [
            run("COMPLETE", 1, "job_v", ["t"], [creates("v")]),
            run("COMPLETE", 2, "job_a", ["v", *([through("t", "v")] * (saying == "job_a"))], ["a"]),
            run("COMPLETE", 3, "job_z", ["v", *([through("t", "v")] * (saying == "job_z"))], ["z"]),
            run("COMPLETE", 4, "job_join", ["a", "z"], ["last"]),
        ],
    )

    defined = {"t -> job_v", "job_v -> v"}
    below = {"t -> v", "v -> job_a", "job_a -> a", "v -> job_z", "job_z -> z"}
    joined = {"a -> job_join", "z -> job_join", "job_join -> last"}
    assert edges_of(engine, "last", "upstream") == defined | below | joined
    assert edges_of(engine, other[-1], "upstream") >= defined
    assert defined.isdisjoint(edges_of(engine, saying[-1], "upstream"))


def test_lineage_of_a_view_reads_one_of_the_jobs_that_say_the_same(engine: Engine) -> None:
    read: list[str | Json] = ["v", through("t", "v")]
    readers = [run("COMPLETE", number, f"job_{number}", read, ["o"]) for number in range(9)]
    last: list[str | Json] = ["v", through("t", "v"), through("u", "v")]
    fill(engine, [*readers, run("COMPLETE", 9, "job_9", last, ["o"])])

    with reader(engine) as connection:
        graph = TableGraph(KnownJobs(connection, NOW))
        walked = graph.walk([node_called(connection, "dataset:db:v").id], Direction.UPSTREAM)
    assert len(walked.steps) == 2
    assert len(graph.known.jobs) == 2
    assert edges_of(engine, "v", "upstream") == {"t -> v", "u -> v"}
    past = view("2026-11-20T12:00:04Z", past=True)
    assert edges_of(engine, "v", "upstream", at=past) == {"t -> v"}


def test_published_edges_have_the_view_between(engine: Engine) -> None:
    again = run("COMPLETE", 2, "job_b", ["v", through("t", "v")], ["p"])
    fill(engine, [READ, again])

    with reader(engine) as connection:
        edge_rows = list(job_edge_rows(connection, NOW.at))
    shown = [
        tuple(str(row[end]).rpartition(":")[2] for end in ("source", "job", "target"))
        for row in edge_rows
    ]
    assert sorted(shown) == [("t", "None", "v"), ("v", "job_a", "o"), ("v", "job_b", "p")]


def test_table_read_through_a_view_is_read(engine: Engine) -> None:
    fill(engine, [READ])

    with reader(engine) as connection:
        answer = ANSWERS["/impact"](connection, {"node": "dataset:db:t"}, NOW)
    assert answer["node"]["lastReadBy"]["job"] == "job:ns:job_a"


def test_views_that_read_each_other_end_every_walk(engine: Engine) -> None:
    read: list[str | Json] = [through("v", "w"), through("w", "v"), through("t", "v")]
    fill(engine, [run("COMPLETE", 1, "job_a", read, [columns("o", x=("t", "x"))])])

    ring = {"t -> v", "v -> w", "w -> v", "v -> job_a", "w -> job_a", "job_a -> o"}
    for node in ("t", "o", "v"):
        assert edges_of(engine, node) == ring
    assert impact_of(engine, "t") == {"v", "w", "job_a", "o", "x"}
    assert impact_of(engine, "t", column="x") >= {"o", "job_a"}
