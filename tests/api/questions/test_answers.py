"""Impact, paths, changes and namespaces, over REST and on the command line."""

import csv
import io
import json

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.commands import Command
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, dataset, parent, run
from worlds.scenarios.taking import fill

IMPACT = """\
KIND    WHAT       DEPENDS  STEPS  OWNERS  LAST READ OR RUN     BY
column  rows.mail  direct   1      -       2026-11-20 12:00:04  job:ns:dashboard
table   rows       direct   1      -       2026-11-20 12:00:04  job:ns:dashboard
job     clean      direct   1      data    2026-11-20 12:00:02  COMPLETE
job     dashboard  opaque   2      sales   2026-11-20 12:00:04  COMPLETE
orders.mail: 1 column, 1 table, 2 jobs depend on it
it was last read 2026-11-20 12:00:02 by job:ns:clean
"""


def test_impact_lists_dependents_of_a_column_and_exits_with_diffs_codes(command: Command) -> None:
    assert command("impact", "orders.mail") == (1, IMPACT, "")
    code, out, err = command("impact", "orders.typo")
    assert (code, out) == (2, "")
    assert "unknown column of dataset:db:orders: 'typo'" in err
    assert "did you mean" in err
    assert command("impact", "totals.number")[0] == 1  # the odd table is made from all of it
    assert command("impact", "no such table")[0] == 2
    assert command("impact", "job:ns:dashboard")[:2] == (
        0,
        "nothing that is known depends on dashboard\n",
    )


def test_impact_agrees_in_json_csv_and_rest(command: Command, server: httpx.Client) -> None:
    as_json = json.loads(command("impact", "orders.mail", "--json")[1])
    code, as_csv, _ = command("impact", "orders.mail", "--csv")
    over_rest = server.get("/impact", params={"node": "orders.mail"}).json()
    by_url = command(
        "impact", "orders.mail", "--json", "--url", str(server.base_url).removesuffix("/api/v2/")
    )

    assert code == 1
    assert over_rest["items"] == as_json["items"] == json.loads(by_url[1])["items"]
    rows = list(csv.DictReader(io.StringIO(as_csv)))
    assert [(row["id"], row["owners"], row["lastReadBy.job"]) for row in rows] == [
        ("column:db:rows:mail", "", "job:ns:dashboard"),
        ("dataset:db:rows", "", "job:ns:dashboard"),
        ("job:ns:clean", "data", ""),
        ("job:ns:dashboard", "sales", ""),
    ]
    assert as_json["affected"] == {"columns": 1, "datasets": 1, "jobs": 2}


def test_impact_as_of_a_moment_ignores_later_events(server: httpx.Client) -> None:
    then = server.get("/impact", params={"node": "orders", "asOf": "2026-11-20T12:00:02.5Z"}).json()

    assert [one["id"] for one in then["items"]] == [
        "column:db:rows:id", "column:db:rows:mail", "dataset:db:rows", "job:ns:clean"
    ]  # fmt: skip
    assert then["node"]["lastReadBy"]["job"] == "job:ns:clean"


def test_filters_hide_nodes_and_count_them(server: httpx.Client) -> None:
    def ids(**given: str) -> tuple[list[str], int]:
        found = server.get(
            "/lineage", params={"node": "orders", "direction": "downstream"} | given
        ).json()
        return [node["name"] for node in found["nodes"]], found["hidden"]["filtered"]

    assert ids(kind="dataset")[0][:3] == ["orders", "rows", "totals"]
    assert ids(namespace="n*") == (["orders", "clean", "count", "dashboard", "odd"], 3)
    assert ids(facet="ownership.owners.name=sales") == (["orders", "dashboard"], 6)
    assert server.get("/impact", params={"node": "orders", "facet": "ownership.owners.name=sales"}).json()["affected"] == {
        "columns": 0, "datasets": 0, "jobs": 1
    }  # fmt: skip
    tagged = server.get(
        "/lineage", params={"node": "rows", "granularity": "column", "tag": "pii"}
    ).json()
    assert "column:db:orders:mail" in [node["id"] for node in tagged["nodes"]]
    assert "column:db:orders:id" not in [node["id"] for node in tagged["nodes"]]


def test_paths_shows_the_way_between_two_tables(command: Command, server: httpx.Client) -> None:
    found = server.get(
        "/lineage/paths", params={"from": "orders", "to": "totals", "toColumn": "number"}
    ).json()

    assert command("paths", "orders", "totals") == (
        0, "orders\n  -> job clean\n  -> rows\n  -> job count\n  -> totals\n", ""
    )  # fmt: skip
    assert command("paths", "totals", "orders")[:2] == (1, "no way is known from there to here\n")
    assert found["shortest"] == [
        "column:db:orders:id", "job:ns:clean", "column:db:rows:id", "job:ns:count", "column:db:totals:number"
    ]  # fmt: skip


def test_changes_lists_what_appeared_and_disappeared_in_a_period(command: Command) -> None:
    code, out, err = command("changes", "rows", "--since", "2026-11-20T12:00:02.5Z", "--until", "2026-11-20T12:00:03.5Z",
                             "--granularity", "column")  # fmt: skip

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "+ table totals",
        "+ job count",
        "+ job count -> totals",
        "+ rows -> job count",
        "+ rows.id -> totals.number (direct) by job count",
        "5 came and 0 went from 2026-11-20 12:00:02 to 2026-11-20 12:00:03",
    ]


def test_namespaces_shows_which_namespaces_feed_each_other(command: Command) -> None:
    code, out, _ = command("namespaces", "--csv")

    assert code == 0
    flows = {
        (row["source"], row["target"]): row["jobs"] for row in csv.DictReader(io.StringIO(out))
    }
    assert flows[("namespace:db", "namespace:db")] == "3"
    assert flows[("namespace:file", "namespace:file")] == "4"


def test_lineage_accepts_several_tables_and_prints_every_graph_format(command: Command) -> None:
    code, out, _ = command("lineage", "rows", "totals", "--direction", "downstream")

    assert code == 0
    assert out.startswith("What is made from rows and totals:\nrows\n")
    assert command("lineage", "rows", "--format", "dot")[1].startswith("digraph lineage {")
    assert (
        command("lineage", "rows", "--depth", "1", "--csv")[2]
        == "strandline: the answer is cut by depth\n"
    )


def test_manual_tags_count_like_tags_from_events(own_server: httpx.Client) -> None:
    (job,) = [one for one in own_server.get("/jobs").json()["items"] if one["name"] == "count"]
    given = str(own_server.base_url).replace("/api/v2/", "/api/v1/namespaces")
    for place in (
        "db/datasets/rows",
        "db/datasets/orders/fields/id",
        f"{job['namespace']}/jobs/count",
    ):
        assert own_server.post(f"{given}/{place}/tags/GOLD", json={}).status_code < 300, place

    def shown(**asked: str) -> set[str]:
        nodes = own_server.get("/lineage", params={"node": "orders"} | asked).json()["nodes"]
        return {node["id"] for node in nodes if node["distance"] > 0}

    found = own_server.get("/search", params={"q": "gOl"}).json()["items"]
    assert shown(tag="GOLD") == {"dataset:db:rows", job["id"]}
    assert shown(tag="GOLD", granularity="column") == {"column:db:rows:mail", "column:db:rows:id"}
    assert shown(tag="silver") == set()
    assert {(one["id"], one["matched"], one["text"]) for one in found} == {
        (id_, "tag", "GOLD") for id_ in ("dataset:db:rows", "dataset:db:orders", job["id"])
    }


def test_changed_columns_are_printed_one_a_line(own_command: Command, own_world: Engine) -> None:
    def rows(*fields: tuple[str, str]) -> dict[str, object]:
        return dataset(
            "rows",
            schema=FACET | {"fields": [{"name": name, "type": kind} for name, kind in fields]},
        )

    later = rows(("id", "bigint"), ("mail", "string"))
    fill(
        own_world,
        [
            run(
                "COMPLETE",
                3.2,
                "clean",
                ["orders"],
                [rows(("id", "int"), ("fax", "string"))],
                run_id="2",
            )
        ],
    )
    fill(own_world, [run("COMPLETE", 3.8, "clean", ["orders"], [later], run_id="3")])

    span = (
        "--since",
        "2026-11-20T12:00:03.5Z",
        "--until",
        "2026-11-20T12:00:03.9Z",
        "--granularity",
        "column",
    )
    code, out, err = own_command("changes", "job:ns:clean", *span)

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "+ column rows.mail (string)",
        "~ column rows.id (int -> bigint)",
        "- column rows.fax (string)",
        "1 came and 1 went from 2026-11-20 12:00:03 to 2026-11-20 12:00:03; 1 of another type",
    ]


def test_tables_with_the_same_short_name_are_shown_by_full_id(
    own_command: Command, own_world: Engine
) -> None:
    twins = [dataset("twin"), dataset("twin") | {"namespace": "other"}]
    fill(own_world, [run("COMPLETE", 3.2, "split", ["orders"], twins)])

    _, out, _ = own_command("changes", "job:ns:split", "--since", "2026-11-20T12:00:03.1Z")

    assert out.splitlines()[:-1] == [
        "+ table dataset:db:twin",
        "+ table dataset:other:twin",
        "+ job split",
        "+ job split -> dataset:db:twin",
        "+ job split -> dataset:other:twin",
        "+ orders -> job split",
    ]


def test_paths_accepts_the_filters_of_lineage_and_keeps_both_ends(
    command: Command, server: httpx.Client
) -> None:
    def found(**given: str) -> tuple[list[str], list[str], int]:
        answer = server.get(
            "/lineage/paths", params={"from": "orders", "to": "totals"} | given
        ).json()
        return (
            [node["name"] for node in answer["nodes"]],
            answer["shortest"],
            answer["hidden"]["filtered"],
        )

    ends = ["dataset:db:orders", "dataset:db:totals"]
    assert found(kind="dataset") == (
        ["orders", "rows", "totals"],
        [ends[0], "dataset:db:rows", ends[1]],
        2,
    )
    assert found(facet="ownership.owners.name=data") == (
        ["orders", "clean", "totals"],
        [ends[0], "job:ns:clean", ends[1]],
        2,
    )
    assert found(namespace="nowhere") == (["orders", "totals"], ends, 3)
    assert found(tag="pii", granularity="column", toColumn="number")[1] == [
        "column:db:orders:id", "job:ns:clean", "job:ns:count", "column:db:totals:number"
    ]  # fmt: skip
    assert command("paths", "orders", "totals", "--kind", "dataset") == (
        0, "orders\n  -> rows\n  -> totals\n(not shown: 2 nodes that were filtered)\n", ""
    )  # fmt: skip


def test_changes_accepts_the_filters_of_lineage(command: Command, server: httpx.Client) -> None:
    span = {"since": "2026-11-20T12:00:02.5Z", "until": "2026-11-20T12:00:04.5Z"}

    def found(**given: str) -> tuple[set[str], int, int]:
        answer = server.get("/lineage/changes", params=span | given).json()
        ends = {one["id"] or f"{one['source']} -> {one['target']}" for one in answer["items"]}
        assert answer["added"] == len(answer["items"])
        assert set(answer["labels"]) == {
            one[name]
            for one in answer["items"]
            for name in ("id", "source", "target", "job")
            if one[name]
        }
        return ends, len(ends), answer["hidden"]["filtered"]

    _, every, hidden = found()
    assert hidden == 0
    assert found(kind="dataset") == ({"dataset:db:totals"}, 1, every - 1)
    assert found(facet="ownership.owners.name=sales") == (
        {"job:ns:dashboard", "dataset:db:rows -> job:ns:dashboard"}, 2, every - 2
    )  # fmt: skip
    assert found(kind="column", granularity="column")[0] == {
        "column:db:rows:id -> column:db:totals:number"
    }
    assert found(namespace="d*", kind="job") == (set(), 0, every)
    code, out, _ = command(
        "changes", "--since", span["since"], "--until", span["until"], "--kind", "dataset"
    )
    assert code == 0
    assert out.splitlines()[0] == "+ table totals"
    assert out.splitlines()[-1] == f"(not shown: {every - 1} changes that were filtered)"


def test_relative_times_mean_the_same_to_command_and_api(
    command: Command, server: httpx.Client
) -> None:
    for moment in ("yesterday", "friday", "18:00"):
        asked = server.get("/impact", params={"node": "orders", "asOf": moment}).json()
        assert (
            asked["asOf"][:16]
            == json.loads(command("impact", "orders", "--as-of", moment, "--json")[1])["asOf"][:16]
        )


@pytest.mark.parametrize(
    ("path", "argv", "reason"),
    [
        ("/lineage?node=rows&kind=column", ("lineage", "rows", "--kind", "column"), "kind=column needs granularity=column"),
        ("/lineage/paths?from=orders&to=rows&kind=column", ("paths", "orders", "rows", "--kind", "column"),
         "kind=column needs granularity=column"),
        ("/lineage?node=rows&kind=job&granularity=column",
         ("lineage", "rows", "--kind", "job", "--granularity", "column"), "kind=job needs granularity=table"),
        ("/lineage/changes?since=2020-01-02&until=2020-01-01",
         ("changes", "--since", "2020-01-02", "--until", "2020-01-01"), "since (2020-01-02T00:00:00Z) is after until"),
    ],
)  # fmt: skip
def test_contradictory_parameters_are_rejected(
    command: Command, server: httpx.Client, path: str, argv: tuple[str, ...], reason: str
) -> None:
    answer = server.get(path)
    code, out, err = command(*argv)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_parameter")
    assert reason in answer.json()["detail"]
    assert (code, out) == (2, "")
    assert reason in err


def test_columns_can_be_named_after_their_table_in_every_query(
    command: Command, server: httpx.Client
) -> None:
    ways = server.get("/lineage/paths", params={"from": "orders.id", "to": "totals.number"}).json()
    same = server.get(
        "/lineage/paths",
        params={"from": "orders", "fromColumn": "id", "to": "totals", "toColumn": "number"},
    ).json()
    graph = server.get("/lineage", params={"node": "orders.mail", "granularity": "column"}).json()

    assert ways["nodes"] == same["nodes"]
    assert [node["id"] for node in graph["nodes"]] == [
        "column:db:orders:mail",
        "column:db:rows:mail",
    ]
    assert command("lineage", "orders.mail", "--granularity", "column")[1].splitlines()[1:3] == [
        "orders.mail", "└─ rows.mail  by clean"
    ]  # fmt: skip
    assert (
        "unknown column of dataset:db:orders: 'typo'"
        in command("paths", "orders.typo", "totals")[2]
    )


def test_datasets_beyond_a_limit_are_counted(command: Command, server: httpx.Client) -> None:
    every = len(server.get("/datasets").json()["items"])
    graph = server.get("/graph", params={"limit": 2}).json()
    changes = server.get("/lineage/changes", params={"since": "2020-01-01", "limit": 2}).json()

    assert (graph["complete"], graph["truncatedBy"], graph["hidden"]["nodes"] >= every - 2) == (
        False,
        "nodes",
        True,
    )
    assert (changes["complete"], changes["truncatedBy"], changes["hidden"]["nodes"]) == (
        False,
        "nodes",
        every - 2,
    )
    out = command("changes", "--since", "2020-01-01", "--limit", "2")[1]
    assert f"(cut by nodes: at least {every - 2} nodes are not shown)" in out


def test_empty_answer_says_when_a_filter_or_limit_hid_nodes(command: Command) -> None:
    filtered, cut = (
        command("impact", "orders", "--tag", "none"),
        command("impact", "orders", "--depth", "0"),
    )

    for code, out, _ in (filtered, cut):
        assert code == 1
        assert out.splitlines()[0] == "nothing shown depends on orders"
    assert "nodes that were filtered" in filtered[1]
    assert "(cut by depth: at least" in cut[1]


def test_application_stands_for_its_statements_in_every_query(
    own_command: Command, own_server: httpx.Client, own_world: Engine
) -> None:
    fill(
        own_world,
        [
            run("START", 20, "app"),
            run(
                "COMPLETE",
                21,
                "app.one",
                ["totals"],
                [columns("week", sum=("totals", "number"))],
                of_run=parent("app"),
            ),
            run(
                "COMPLETE",
                22,
                "app.two",
                ["week"],
                [columns("year", all=("week", "sum"))],
                of_run=parent("app"),
            ),
        ],
    )

    ways = own_server.get("/lineage/paths", params={"from": "orders", "to": "app"}).json()
    by_column = own_server.get("/lineage/paths", params={"from": "orders.id", "to": "app"}).json()
    graph = own_server.get(
        "/lineage", params={"node": "app", "granularity": "column", "direction": "downstream"}
    ).json()
    breaks = own_server.get("/impact", params={"node": "app"}).json()
    changes = own_server.get(
        "/lineage/changes", params={"node": "app", "since": "2026-11-20T12:00:10Z"}
    ).json()

    assert ways["shortest"][0] == "dataset:db:orders"
    assert ways["shortest"][-1] == "job:ns:app.one"
    assert by_column["shortest"][-1] == "job:ns:app.one"
    assert {"column:db:week:sum", "column:db:year:all"} <= {node["id"] for node in graph["nodes"]}
    assert {"column:db:week:sum", "dataset:db:year"} <= {one["id"] for one in breaks["items"]}
    assert {"dataset:db:week", "dataset:db:year"} <= {one["id"] for one in changes["items"]}
    assert own_command("paths", "app", "year")[0] == 0


def test_job_lineage_shows_columns_of_its_inputs_and_outputs(command: Command) -> None:
    shown = command("lineage", "job:ns:count", "--granularity", "column", "--depth", "2")[
        1
    ].splitlines()

    assert shown[:4] == [
        "What the columns are made from:", "totals.number", "└─ rows.id  by count", "   └─ orders.id  by clean"
    ]  # fmt: skip
    assert shown[4:8] == [
        "",
        "What is made from the columns:",
        "rows.id",
        "└─ totals.number  by count",
    ]
    reads = command(
        "lineage", "job:ns:count", "--granularity", "column", "--direction", "upstream"
    )[1]
    assert reads.splitlines() == [
        "What the columns are made from:",
        "rows.id",
        "└─ orders.id  by clean",
    ]


def test_removed_column_is_marked_as_missing_from_the_schema(
    own_command: Command, own_server: httpx.Client, own_world: Engine
) -> None:
    """A column is renamed between two loads, and both loads are recent."""
    for second, column in ((20, "old"), (22, "new")):
        made = columns("prices", **{column: ("orders", "id")})
        made["facets"]["schema"] = FACET | {"fields": [{"name": column, "type": "int"}]}
        fill(own_world, [run("COMPLETE", second, "price", ["orders"], [made], run_id=column)])

    now, then = (
        own_server.get("/impact", params={"node": "orders.id"} | more).json()["items"]
        for more in ({}, {"asOf": "2026-11-20T12:00:21Z"})
    )
    told = {
        one["column"]: one["inSchema"] for one in now if one["name"] == "prices" and one["column"]
    }
    told_then = {
        one["column"]: one["inSchema"] for one in then if one["name"] == "prices" and one["column"]
    }
    unstated = {one["inSchema"] for one in now if one["name"] == "rows"}
    text = own_command("impact", "orders.id")[1]

    assert (told, told_then, unstated) == ({"old": False, "new": True}, {"old": None}, {None})
    assert "prices.old  (not in its newest schema)" in text
    assert text.count("(not in its newest schema)") == 1
