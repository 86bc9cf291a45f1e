"""Rollbacks on real Iceberg tables, by hand and by --execute."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from fixtures.waiting import wait_until
from strandline.cli import main
from strandline_spark import aligned_stream, read_consistent

pytestmark = pytest.mark.spark

ROOTS = ("credits", "debits")
Rows = list[tuple[int, ...]]


class Pipeline:
    """credits and debits -> movements (appended, by changes) -> balance (overwritten)."""

    def __init__(self, bank: Any, url: str, database: str) -> None:
        from worlds.lake import name_the_place

        self.bank, self.url, self.database = bank, url, database
        self.factor = 1  # what the job of movements multiplies by: 1 is right
        for table in (*ROOTS, "movements", "balance"):
            bank.table(table)
            name_the_place(bank, url, table)

    def commit(self, *barriers: int) -> None:
        """A transfer at each barrier."""
        from worlds.lake import report_commits

        for barrier in barriers:
            for table in ROOTS:
                self.bank.commit(table, barrier, (barrier % 2, 10 * barrier))
        for table in ROOTS:
            report_commits(self.bank, self.url, f"bank_{table}", table, "bank")

    def start(self, table: str, **how: Any) -> Any:
        """Start the job of a table."""
        bank, place = self.bank, str(self.bank.folder / "ck" / table)
        if table == "movements":
            sources, how = (
                [bank.name(one) for one in ROOTS],
                {"changes": ROOTS, "mode": "append", **how},
            )
            return aligned_stream(
                bank.spark,
                sources,
                bank.name(table),
                self._movements,
                checkpoint=place,
                group="bank",
                name=table,
                **how,
            )
        return aligned_stream(
            bank.spark,
            [bank.name("movements")],
            bank.name(table),
            _balances,
            checkpoint=place,
            group="bank",
            name=table,
            **how,
        )

    def _movements(self, inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
        debits = inputs["debits"].selectExpr("account", "-amount AS amount")
        return (
            inputs["credits"]
            .unionAll(debits)
            .selectExpr("account", f"amount * {self.factor} AS amount")
        )

    def work(self, run: str = "") -> None:
        """Let both jobs take all barriers that are there, tell of them, and end."""
        from worlds.lake import report_commits, report_end

        for table in ("movements", "balance"):
            query = self.start(table, available_now=True, timeout=60)
            try:
                assert query.awaitTermination(600)
            finally:
                query.stop()
            report_commits(self.bank, self.url, f"bank_{table}", table, "bank", run=run)
        for table in ("movements", "balance"):
            report_end(self.url, f"bank_{table}", run)

    def rows(self) -> tuple[Rows, Rows]:
        """Return the rows of movements and balance."""
        names = (self.bank.name("movements"), self.bank.name("balance"))
        return tuple(sorted(map(tuple, self.bank.spark.table(one).collect())) for one in names)  # type: ignore[return-value]

    def strong(self) -> tuple[int | None, int]:
        """The barrier of a strong read of all tables, and what their sums do not agree in."""
        names = [self.bank.name(one) for one in (*ROOTS, "movements", "balance")]
        with read_consistent(self.bank.spark, names) as tables:
            sums = [tables[one].groupBy().sum("amount").first()[0] for one in names]
            return tables.barrier, abs(sums[0] - sums[1] - sums[2]) + abs(sums[2] - sums[3])

    def command(self, *more: str) -> list[str]:
        """`strandline rollback` of movements to barrier 2."""
        conf = self.bank.spark.conf
        uri = conf.get("spark.sql.catalog.lake.uri").replace("jdbc:sqlite:", "sqlite:///")
        properties = {
            "type": "sql",
            "uri": uri,
            "warehouse": conf.get("spark.sql.catalog.lake.warehouse"),
        }
        named = [f"--catalog-property=lake.{key}={value}" for key, value in properties.items()]
        table = self.bank.name("movements")
        return [
            "rollback",
            table,
            "2",
            "--database-url",
            self.database,
            *more,
            *(named if "--json" not in more else []),
        ]


def _balances(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    return inputs["movements"].groupBy("account").sum("amount").toDF("account", "amount")


RIGHT = (
    sorted(row for b in (1, 2, 3, 4, 5) for row in ((b % 2, 10 * b), (b % 2, -10 * b))),
    [(0, 0), (1, 0)],
)


@pytest.fixture
def pipeline(bank: Any, collector: str, sqlite_url: str) -> Iterator[Pipeline]:
    """Barriers 1 and 2 are right; at 3 and 4 the job of movements multiplied by 7."""
    bank.spark.conf.set("spark.strandline.job.name", "bank_{output}")
    found = Pipeline(bank, collector, sqlite_url)
    found.commit(1, 2)
    found.work()
    found.commit(3, 4)
    found.factor = 7
    found.work()
    found.factor = 1
    yield found
    bank.spark.conf.unset("spark.strandline.job.name")


@pytest.mark.slow
def test_full_plan_run_by_hand_replays_everything(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ("--lost-state", "bank_movements")
    assert main(pipeline.command(*lost, "--json"), {}) == 0
    plan = json.loads(capsys.readouterr().out)

    for step in plan["steps"]:
        for statement in step.get("sql", "").split(";\n"):
            if statement:
                pipeline.bank.spark.sql(statement)
        if step.get("checkpointLocation"):
            shutil.rmtree(step["checkpointLocation"])
        if step["action"] == "raise generation":
            assert main(pipeline.command(*lost, "--done"), {}) == 0
    pipeline.commit(5)
    pipeline.work("again")

    assert plan["kind"] == "full"
    assert pipeline.rows() == RIGHT
    assert pipeline.strong() == (5, 0)


@pytest.mark.slow
def test_rollback_killed_in_every_step_still_completes(pipeline: Pipeline) -> None:
    outputs = [
        killed_at(pipeline.command("--execute"), steps) for steps in (1, 1, 2, 2, 2, 2, 2, 2)
    ]
    last = outputs[-1]
    again = killed_at(pipeline.command("--execute"), 99)
    pipeline.commit(5)
    pipeline.work("again")

    assert sum(one[-1].endswith("...") for one in outputs) >= 5  # so many were killed in a step
    assert outputs[0][:4] == [
        "incremental plan back to barrier 2; rehearsal:",
        f"  {pipeline.bank.name('balance')}: 2 rows now, 2 after: +0",
        f"  {pipeline.bank.name('movements')}: 8 rows now, 4 after: -4",
        outputs[0][3],
    ]
    assert (
        last[-1] == again[-1] == "start these jobs now, in this order: bank_movements, bank_balance"
    )
    assert again[0] == "already done: generation 2 of group bank has begun"
    assert pipeline.rows() == RIGHT
    assert pipeline.strong() == (5, 0)


def killed_at(command: list[str], step: int) -> list[str]:
    """Run the command until it begins its so-many-th step, and kill it there.

    The lines that it printed.
    """
    lines, begun = [], 0
    with subprocess.Popen(
        [sys.executable, "-m", "strandline", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            begun += lines[-1].endswith("...")
            if begun == step:
                process.send_signal(signal.SIGKILL)
                break
    return lines


@pytest.mark.slow
def test_old_driver_cannot_commit_into_rolled_back_tables(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.factor = 7
    zombie = pipeline.start("movements", trigger="200 milliseconds", timeout=None)
    try:
        wait_until(lambda: zombie.lastProgress is not None or zombie.status["isTriggerActive"])
        assert main(pipeline.command("--lost-state", "bank_movements", "--execute"), {}) == 0
        pipeline.commit(5)
        with pytest.raises(
            StreamingQueryException,
            match=r"RolledBackError|Cannot determine history|ck/movements/\w+ does not exist",
        ):
            zombie.awaitTermination(600)
    finally:
        zombie.stop()
    assert pipeline.rows() == ([], [])
    pipeline.factor = 1
    pipeline.work("again")

    assert pipeline.rows() == RIGHT
    assert pipeline.strong() == (5, 0)


@pytest.mark.slow
def test_rollback_requires_jobs_to_be_stopped(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    from worlds.lake import report_start

    report_start(pipeline.url, "bank_balance", run="another")
    before = pipeline.rows()

    assert main(pipeline.command("--execute"), {}) == 1

    assert capsys.readouterr().err == (
        "strandline: stop these jobs first, in this order: bank_balance; then run the command again\n"
    )
    assert pipeline.rows() == before
    assert Path(pipeline.bank.folder / "ck" / "balance" / "offsets").is_dir()
