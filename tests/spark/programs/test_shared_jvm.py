"""Several Python processes on one JVM: one reports, and ended ones leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.emitter.drivers import emitting
from fixtures.emitter.kernels import SharedJvm, shared_jvm
from fixtures.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[SharedJvm]:
    """One JVM for the tests of this file; each leaves it without a kernel."""
    folder = tmp_path_factory.mktemp("shared")
    with shared_jvm(folder, emitting(folder)) as jvm:
        yield jvm


def told_of(jvm: SharedJvm, name: str) -> list[str]:
    """Return the kinds of write of a folder that events report."""
    return [line for line in jvm.driver.lines() if f"bank.~/{name} " in line]


def written_once(name: str) -> list[str]:
    """The events of one write, told once."""
    return [f"{state} bank.~/{name} [] -> [{name}]" for state in ("START", "COMPLETE")]


def test_second_kernel_takes_over_when_the_first_ends(jvm: SharedJvm) -> None:
    with jvm.kernel() as first, jvm.kernel() as second:
        assert (first.emits(), second.emits()) == (True, False)

        first.write("of_the_first")
        second.write("of_the_second")
        first.end()

        assert told_of(jvm, "of_the_first") == written_once("of_the_first")
        assert told_of(jvm, "of_the_second") == written_once("of_the_second")
        wait_until(second.emits)
        second.write("after_the_first")
        second.end()

    assert told_of(jvm, "after_the_first") == written_once("after_the_first")
    assert jvm.claims() == []


def test_restarted_kernel_reports_after_the_first_was_killed(jvm: SharedJvm) -> None:
    with jvm.kernel() as killed, jvm.kernel() as other:
        assert killed.emits()
        other.ask("activation.disable(spark)")
        killed.write("before_the_kill")
        wait_until(lambda: told_of(jvm, "before_the_kill") == written_once("before_the_kill"))
        killed.kill()
        for number in range(60):
            other.write(f"meanwhile{number}")

        wait_until(lambda: jvm.claims() == [])
        other.ask("__import__('gc').collect()")
        assert (
            jvm.waiting_executions() < 45
        )  # those that the queue took before the lease ended are 60 and more

    with jvm.kernel() as restarted:
        assert restarted.emits()
        restarted.write("after_the_restart")
        restarted.end()

    assert told_of(jvm, "after_the_restart") == written_once("after_the_restart")


def test_hung_kernel_reports_again_after_its_lock_expired(jvm: SharedJvm) -> None:
    with jvm.kernel() as kernel:
        kernel.write("before_it_hung")
        wait_until(lambda: told_of(jvm, "before_it_hung") == written_once("before_it_hung"))
        kernel.pause()
        wait_until(lambda: jvm.claims() == [])
        kernel.go_on()
        wait_until(lambda: jvm.claims() != [])
        kernel.write("after_it_hung")
        kernel.end()

    assert told_of(jvm, "after_it_hung") == written_once("after_it_hung")


def test_hung_kernel_duplicates_nothing_after_a_takeover(jvm: SharedJvm) -> None:
    with jvm.kernel() as hung, jvm.kernel() as other:
        assert hung.emits()
        hung.pause()
        wait_until(other.emits)
        hung.go_on()
        wait_until(
            lambda: hung.ask("[one._taken_over for one in activation._emitters.values()]") == [True]
        )

        hung.write("of_the_one_that_hung")
        other.write("of_the_other")
        other.end()

    assert told_of(jvm, "of_the_one_that_hung") == written_once("of_the_one_that_hung")
    assert told_of(jvm, "of_the_other") == written_once("of_the_other")


STREAM = """(
    spark.readStream.format("rate").load().writeStream.queryName("handed").format("parquet")
    .option("checkpointLocation", "handed_checkpoint").trigger(processingTime="1 second").start("handed").name
)"""


def test_standby_kernel_reports_a_query_that_outlives_its_process(jvm: SharedJvm) -> None:
    with jvm.kernel() as first, jvm.kernel() as second:
        assert first.ask(" ".join(STREAM.split())) == "handed"
        wait_until(lambda: "RUNNING" in states(jvm, "handed"))
        first.end()
        wait_until(second.emits)
        told = len(states(jvm, "handed"))
        wait_until(lambda: "RUNNING" in states(jvm, "handed")[told:])
        assert not {"ABORT", "COMPLETE", "FAIL"} & set(states(jvm, "handed"))

        second.ask(
            "[one.stop() for one in spark._jsparkSession.sharedState().activeStreamingQueries().values()]"
        )
        wait_until(lambda: states(jvm, "handed")[-1] == "ABORT")
        second.end()

    assert states(jvm, "handed").count("ABORT") == 1


def states(jvm: SharedJvm, name: str) -> list[str]:
    """Return the states of a streaming query's run in the events."""
    return [line.split()[0] for line in jvm.driver.lines() if line.split()[1] == f"bank.{name}"]


def test_concurrent_activation_makes_one_emitter(jvm: SharedJvm) -> None:
    with jvm.kernel() as kernel:
        kernel.ask("activation.disable(spark)")
        wait_until(lambda: kernel.ask("emitters()") == 0)

        assert kernel.ask("enabled_at_once()") == 1
        kernel.end()
