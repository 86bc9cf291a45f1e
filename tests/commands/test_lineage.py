"""`strandline lineage` as printed for people."""

import json

import pytest
from sqlalchemy import Engine

from fixtures.commands import Command, command_on
from fixtures.servers import serving
from worlds.scenarios.bank import FACET, bank, run_id
from worlds.scenarios.plain import columns, dataset, parent, run
from worlds.scenarios.taking import fill

BOTH = """\
What lake.bank.balance is made from:
lake.bank.balance
└─ job bank_balance  COMPLETE 2026-11-20 12:00:21
   ├─ lake.bank.credits
   │  └─ job bank_credits  COMPLETE 2026-11-20 12:00:21
   │     └─ lake.bank.transfers
   │        └─ job bank_ingest  COMPLETE 2026-11-20 12:00:21
   └─ lake.bank.debits
      └─ job bank_debits  COMPLETE 2026-11-20 12:00:21
         └─ lake.bank.transfers  ... (see above)

What is made from lake.bank.balance:
lake.bank.balance
└─ job bank_report  COMPLETE 2026-11-20 12:00:24
   └─ lake.bank.report
"""
SNAPSHOTS = """\
What lake.bank.balance @ 410 is made from:
lake.bank.balance @ 410  barrier 10  by bank_balance
├─ lake.bank.credits @ 210  barrier 10  by bank_credits
│  └─ lake.bank.transfers @ 110  barrier 10  by bank_ingest
└─ lake.bank.debits @ 310  barrier 10  by bank_debits
   └─ lake.bank.transfers @ 110  barrier 10  by bank_ingest

What is made from lake.bank.balance @ 410:
lake.bank.balance @ 410  barrier 10  by bank_balance
└─ lake.bank.report @ 501  by bank_report
"""


@pytest.fixture
def lineage(sqlite_url: str, sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs `strandline lineage` on a store with the bank."""
    fill(sqlite_engine, bank())
    return command_on(sqlite_url, capsys, "lineage")


def test_short_name_selects_a_table(lineage: Command) -> None:
    assert lineage("bank.balance") == (0, BOTH, "")
    assert lineage("lake.bank.balance") == (0, BOTH, "")
    assert lineage("dataset:file:/lake/bank/balance") == (0, BOTH, "")


def test_snapshots_option_shows_snapshots(lineage: Command) -> None:
    assert lineage("bank.balance", "--snapshots") == (0, f"{BOTH}\n{SNAPSHOTS}", "")


def test_edges_missing_from_the_latest_run_are_marked(
    lineage: Command, sqlite_engine: Engine
) -> None:
    """One INSERT from each of two tables, under one name."""
    fill(
        sqlite_engine,
        [
            run("COMPLETE", 1, "etl", ["eu"], ["daily"]),
            run("COMPLETE", 2, "etl", ["us"], ["daily"], run_id="2"),
        ],
    )

    code, out, _ = lineage("daily", "--direction", "upstream")

    assert (code, out.splitlines()) == (
        0,
        [
            "What daily is made from:",
            "daily",
            "└─ job etl  COMPLETE 2026-11-20 12:00:02",
            "   ├─ eu  (not in the latest run: in 1 of 2, last 2026-11-20 12:00:01)",
            "   └─ us",
        ],
    )
    assert "eu" not in lineage("daily", "--state", "latest")[1]


@pytest.mark.parametrize("form", [(), ("--format", "mermaid"), ("--format", "dot")])
def test_tables_of_one_name_are_told_apart(
    lineage: Command, sqlite_engine: Engine, form: tuple[str, ...]
) -> None:
    buckets = [{"namespace": f"s3://{one}", "name": "orders", "facets": {}} for one in "ab"]
    fill(sqlite_engine, [run("COMPLETE", 1, "join", buckets, ["daily"])])

    _, out, _ = lineage("daily", "--direction", "upstream", *form)

    assert ("s3://a/orders" in out, "s3://b/orders" in out) == (True, True)


def test_column_asks_from_column_to_column(lineage: Command, sqlite_engine: Engine) -> None:
    fill(sqlite_engine, [run("COMPLETE", 1, "sum", ["a"], [columns("b", total=("a", "amount"))])])

    code, out, _ = lineage("b", "--column", "total", "--direction", "upstream")

    assert (code, "a.amount" in out) == (0, True)


def test_last_part_of_a_path_is_a_name(lineage: Command, sqlite_engine: Engine) -> None:
    fill(
        sqlite_engine,
        [
            run("COMPLETE", 1, "export", ["daily"], ["/lake/exports/report.csv"]),
            run("COMPLETE", 1, "copy", ["/a/twice.csv"], ["/b/twice.csv"]),
        ],
    )

    code, out, _ = lineage("report.csv", "--direction", "upstream")
    ambiguous = lineage("twice.csv")

    assert (code, out.splitlines()[0]) == (0, "What /lake/exports/report.csv is made from:")
    assert lineage("exports/report.csv", "--direction", "upstream")[1] == out
    assert ambiguous[0] == 2
    assert "several are called 'twice.csv'" in ambiguous[2]


def test_edges_say_that_the_latest_run_failed(lineage: Command, sqlite_engine: Engine) -> None:
    fill(
        sqlite_engine,
        [
            run("COMPLETE", 1, "etl", ["eu"], ["daily"]),
            run("START", 2, "etl", run_id="2"),
            run("FAIL", 3, "etl", run_id="2"),
        ],
    )

    _, out, _ = lineage("daily", "--direction", "upstream")

    failed = "(latest run FAIL 2026-11-20 12:00:03; last seen 2026-11-20 12:00:01)"
    assert failed in out


def test_failure_is_shown_with_its_reason_and_its_parent(
    lineage: Command, sqlite_engine: Engine
) -> None:
    error = {
        "errorMessage": {"message": "disk full\n\tat Disk.java", "programmingLanguage": "JAVA"}
    }
    fill(
        sqlite_engine,
        [
            run("COMPLETE", 3, "app"),
            run("FAIL", 2, "app.load", ["eu"], ["daily"], of_run=parent("app") | error),
        ],
    )

    assert "└─ job app.load  FAIL 2026-11-20 12:00:02: disk full" in lineage("eu")[1].splitlines()
    assert lineage("app", "--direction", "upstream")[1].splitlines()[1:] == [
        "job app  COMPLETE 2026-11-20 12:00:03  (1 below it failed)",
        "└─ eu",
    ]
    daily = lineage("daily")[1]  # a statement that failed has made nothing
    assert "─ job app.load" not in daily
    assert "(the latest run of job app.load is FAIL: disk full" in daily


def test_ambiguous_name_is_rejected_with_all_candidates(
    lineage: Command, sqlite_engine: Engine
) -> None:
    fill(
        sqlite_engine,
        [run("COMPLETE", 1, "bank_balance", [], [{"namespace": "pg", "name": "balance"}])],
    )

    assert lineage("balance") == (
        2,
        "",
        "strandline: several are called 'balance': say which: dataset:file:/lake/bank/balance, dataset:pg:balance\n",
    )


def test_unknown_name_is_rejected_with_suggestions(lineage: Command) -> None:
    code, out, err = lineage("bank.balence")

    assert (code, out) == (2, "")
    assert err == (
        "strandline: unknown dataset or job: 'bank.balence'; "
        "did you mean lake.bank.balance, bank_balance?\n"
    )


def test_names_are_case_insensitive(lineage: Command) -> None:
    assert lineage("BANK.Balance") == (0, BOTH, "")
    assert lineage("dataset:FILE:/Lake/bank/balance") == (0, BOTH, "")


def test_empty_half_of_the_answer_is_omitted(lineage: Command) -> None:
    _, out, _ = lineage("bank.report", "--depth", "1")
    _, columns, _ = lineage("bank.report", "--granularity", "column", "--depth", "1")

    assert [line for line in out.splitlines() if line.startswith("What")] == [
        "What lake.bank.report is made from:"
    ]
    assert [line for line in columns.splitlines() if line.startswith("What")] == [
        "What the columns are made from:"
    ]


def test_unknown_snapshot_is_rejected(lineage: Command) -> None:
    code, _, err = lineage("bank.balance", "--snapshot", "9")

    assert code == 2
    assert err.startswith(
        "strandline: unknown snapshot of dataset:file:/lake/bank/balance: 9; did you mean 410, "
    )


def test_columns_show_their_expressions(lineage: Command) -> None:
    code, out, _ = lineage("bank.debits", "--granularity", "column", "--direction", "upstream")

    assert (code, out) == (
        0,
        (
            "What the columns are made from:\n"
            "lake.bank.debits.account\n"
            "└─ lake.bank.transfers.payer  by bank_debits\n"
            "lake.bank.debits.amount\n"
            "└─ lake.bank.transfers.amount  = (- amount)  by bank_debits\n"
        ),
    )


def test_step_without_columns_is_marked_as_not_followable(lineage: Command) -> None:
    argv = ("bank.balance", "--granularity", "column", "--direction", "upstream")
    _, out, _ = lineage(*argv)
    edges = json.loads(lineage(*argv, "--json")[1])["edges"]

    lines = out.splitlines()
    assert "├─ lake.bank.credits  by bank_balance  (not followable here)" in lines
    assert "│  ├─ lake.bank.transfers.amount  by bank_credits" in lines
    assert {(edge["job"], edge["opaque"]) for edge in edges} == {
        ("job:bank:bank_balance", True),
        ("job:bank:bank_credits", False),
        ("job:bank:bank_debits", False),
    }


def test_unfollowable_steps_are_named_as_the_producer_names_them(
    lineage: Command, sqlite_engine: Engine
) -> None:
    """They come from each recent run, but not from a job whose columns are stated."""
    for number, task in enumerate(("MapInPandas", "LogicalRDD")):
        errors = [
            {"errorMessage": f"{task}: what its rows are made of is not known", "task": task},
            {"task": 7},
            None,
        ]
        facet = {"extractionError": FACET | {"totalTasks": 3, "failedTasks": 3, "errors": errors}}
        fill(
            sqlite_engine,
            [run("COMPLETE", number, "score", ["a"], ["b"], run_id=str(number), of_run=facet)],
        )
    argv = ("b", "--granularity", "column", "--direction", "upstream")

    _, out, _ = lineage(*argv)
    (edge,) = json.loads(lineage(*argv, "--json")[1])["edges"]

    assert out.splitlines()[-1] == "└─ a  by score  (not followable here: LogicalRDD, MapInPandas)"
    assert edge["opaqueSteps"] == ["LogicalRDD", "MapInPandas"]


def test_cyclic_columns_are_expanded_once_each(lineage: Command, sqlite_engine: Engine) -> None:
    """Ten columns derive from all ten in two ways: the output has one line per edge."""
    names = [f"c{number}" for number in range(10)]
    kinds = [{"type": kind} for kind in ("DIRECT", "INDIRECT")]
    origins = [
        {"namespace": "db", "name": "t", "field": name, "transformations": kinds} for name in names
    ]
    facet = FACET | {"fields": {name: {"inputFields": origins} for name in names}}
    fill(sqlite_engine, [run("COMPLETE", 1, "mix", ["t"], [dataset("t", columnLineage=facet)])])

    code, out, _ = lineage("t", "--granularity", "column", "--direction", "upstream")

    assert code == 0
    assert len(out.splitlines()) <= 2 + len(names) + 2 * len(names) ** 2


def test_depth_limit_says_that_there_is_more(lineage: Command) -> None:
    _, out, _ = lineage("bank.balance", "--depth", "1", "--direction", "upstream")

    assert (
        out.splitlines()[-1]
        == "(there is more behind, at least 3 nodes: a greater --depth shows it)"
    )


@pytest.mark.parametrize("granularity", ["table", "column"])
def test_depth_of_zero_does_not_claim_an_empty_answer(lineage: Command, granularity: str) -> None:
    _, out, _ = lineage("bank.balance", "--depth", "0", "--granularity", granularity)

    assert "nothing that is known" not in out
    assert out.splitlines()[0].startswith("lake.bank.balance")
    assert (
        out.splitlines()[-1]
        == "(there is more behind, at least 5 nodes: a greater --depth shows it)"
    )


def test_table_without_readers_shows_nothing_known(lineage: Command) -> None:
    _, out, _ = lineage("bank.report", "--direction", "downstream")

    assert (
        out == "What is made from lake.bank.report:\nlake.bank.report\n└─ nothing that is known\n"
    )


def test_running_collector_gives_the_same_answer(lineage: Command, sqlite_engine: Engine) -> None:
    with serving(sqlite_engine) as address:
        asked = lineage("bank.balance", "--snapshots", "--url", address)
        unknown = lineage("bank.balence", "--url", address)

    assert asked == (0, f"{BOTH}\n{SNAPSHOTS}", "")
    assert unknown[0] == 2
    assert unknown[2].endswith("did you mean lake.bank.balance, bank_balance?\n")


def test_unreachable_collector_is_reported_in_one_line(lineage: Command) -> None:
    code, out, err = lineage("bank.balance", "--url", "http://127.0.0.1:1")

    assert (code, out) == (1, "")
    assert err.startswith("strandline: cannot reach the collector at http://127.0.0.1:1 (")
    assert err.count("\n") == 1


def test_column_option_shows_one_column(lineage: Command) -> None:
    _, out, _ = lineage(
        "bank.debits", "--granularity", "column", "--column", "amount", "--direction", "upstream"
    )

    assert out.splitlines()[1:] == [
        "lake.bank.debits.amount",
        "└─ lake.bank.transfers.amount  = (- amount)  by bank_debits",
    ]


def test_table_and_column_are_asked_for_in_one_word(lineage: Command) -> None:
    one_word = lineage("bank.debits.amount", "--direction", "upstream")
    by_option = lineage("bank.debits", "--column", "amount", "--direction", "upstream")
    misspelt = lineage("bank.debits.amuont")

    assert one_word == by_option
    assert one_word[0] == 0
    assert misspelt[0] == 2
    assert "'amuont'; did you mean amount" in misspelt[2]


def test_as_of_shows_past_lineage(lineage: Command) -> None:
    _, out, _ = lineage(
        "bank.balance", "--direction", "downstream", "--as-of", "2026-11-20T12:00:21.5Z"
    )

    assert (
        out == "What is made from lake.bank.balance:\nlake.bank.balance\n└─ nothing that is known\n"
    )
    assert lineage("bank.balance", "--direction", "downstream", "--as-of", "9000d") == (
        0,
        out,
        "",
    )  # before all events


def test_as_of_starts_from_the_newest_snapshot_of_that_moment(lineage: Command) -> None:
    _, out, _ = lineage(
        "bank.credits",
        "--direction",
        "upstream",
        "--snapshots",
        "--as-of",
        "2026-11-20T12:00:08.5Z",
    )

    assert out.splitlines()[-2:] == [
        "lake.bank.credits @ 204  barrier 4  by bank_credits",
        "└─ lake.bank.transfers @ 104  barrier 4  by bank_ingest",
    ]


def test_compacted_snapshot_leads_to_the_snapshot_with_its_rows(
    lineage: Command, sqlite_engine: Engine
) -> None:
    compacted = {"snapshotId": "411", "parentSnapshotId": "410", "operation": "replace"}
    read = {
        "namespace": "file",
        "name": "/lake/bank/balance",
        "inputFacets": {"strandline_snapshot": FACET | compacted},
    }
    made = dataset("late") | {"outputFacets": {"strandline_snapshot": FACET | {"snapshotId": "7"}}}
    fill(sqlite_engine, [run("COMPLETE", 40, "late", [read], [made])])

    _, out, _ = lineage("bank.balance", "--snapshot", "411")

    title = "What lake.bank.balance @ 411 is made from:"
    up, down = out[out.index(title) :].split("\n\n")
    assert up.splitlines()[1:4] == [
        "lake.bank.balance @ 411  the rows of 410",
        "└─ lake.bank.balance @ 410  barrier 10  by bank_balance",
        "   ├─ lake.bank.credits @ 210  barrier 10  by bank_credits",
    ]
    assert down.splitlines()[1:] == [
        "lake.bank.balance @ 411  the rows of 410",
        "└─ late @ 7  by late",
    ]


def test_lineage_of_a_run_shows_the_runs_that_it_depends_on(lineage: Command) -> None:
    code, out, _ = lineage(f"run:{run_id('credits')}")

    assert (code, out.splitlines()) == (
        0,
        [
            f"What {run_id('credits')} stands on:",
            f"run {run_id('credits')} of bank_credits  COMPLETE 2026-11-20 12:00:21",
            f"└─ run {run_id('ingest')} of bank_ingest  COMPLETE 2026-11-20 12:00:21  (/lake/bank/transfers @ 110)",
        ],
    )
    assert lineage(f"run:{run_id('credits')}", "--format", "mermaid")[1].startswith("flowchart LR")
    assert (
        json.loads(lineage(f"run:{run_id('credits')}", "--depth", "0", "--json")[1])["truncatedBy"]
        == "depth"
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("run:1",), "strandline: run:ID must be the only name\n"),
        (
            ("--granularity", "column", "--collapse", "root"),
            "strandline: --collapse needs --granularity table\n",
        ),
    ],
)
def test_conflicting_arguments_are_rejected(
    lineage: Command, arguments: tuple[str, ...], fault: str
) -> None:
    assert lineage("bank.debits", *arguments) == (2, "", fault)


@pytest.mark.parametrize(
    "arguments", [("--depth", "-1"), ("--limit", "many"), ("--as-of", "monthly")]
)
def test_malformed_argument_is_a_usage_error(lineage: Command, arguments: tuple[str, ...]) -> None:
    code, out, err = lineage("bank.debits", *arguments)

    assert (code, out) == (2, "")
    assert f"argument {arguments[0]}: {arguments[1]} is not a " in err


def test_warehouse_address_is_not_shown_as_a_catalog(
    lineage: Command, sqlite_engine: Engine
) -> None:
    other = {"namespace": "file:/warehouse", "name": "shop.loans", "type": "TABLE"}
    loans = {"namespace": "file", "name": "/warehouse/shop/loans"}
    loans["facets"] = {"symlinks": FACET | {"identifiers": [other]}}  # type: ignore[assignment]
    fill(sqlite_engine, [run("COMPLETE", 7, "loans", [], [loans])])

    whole, short = (lineage(name)[1] for name in ("file:/warehouse.shop.loans", "shop.loans"))

    assert whole == short
    assert "What shop.loans is made from:\nshop.loans\n" in short
