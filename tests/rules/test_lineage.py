"""The walk over lineage, on graphs small enough to draw."""

from collections.abc import Sequence

from strandline.core.walk import LEAST_STEPS, Direction, WalkStep, walk

# ingest -> transfers -> credits and debits -> balance -> report; audit only reads balance.
BANK = (
    WalkStep(None, "ingest", "transfers"),
    WalkStep("transfers", "credit", "credits"),
    WalkStep("transfers", "debit", "debits"),
    WalkStep("credits", "add", "balance"),
    WalkStep("debits", "add", "balance"),
    WalkStep("balance", "ctas", "report"),
    WalkStep("balance", "audit", None),
)
UP, DOWN, BOTH = Direction.UPSTREAM, Direction.DOWNSTREAM, Direction.BOTH


class Steps:
    """A graph that is a list, and remembers what it was asked."""

    def __init__(self, *steps: WalkStep[str]) -> None:
        self.all = steps
        self.asked: list[tuple[str, ...]] = []

    def steps(self, nodes: Sequence[str], way: Direction, limit: int) -> Sequence[WalkStep[str]]:
        self.asked.append(tuple(nodes))
        leave = [
            step
            for step in self.all
            if step.via in nodes or (step.target if way is UP else step.source) in nodes
        ]
        return leave[:limit]


def test_upstream_of_a_table_includes_sources_and_jobs_between() -> None:
    found = walk(Steps(*BANK), ["balance"], UP)

    assert found.nodes == {
        "balance": 0, "add": 1, "credits": 1, "debits": 1,
        "credit": 2, "debit": 2, "transfers": 2, "ingest": 3,
    }  # fmt: skip
    assert set(found.steps) == set(BANK[:5])
    assert found.complete


def test_downstream_of_a_table_includes_jobs_that_only_read_it() -> None:
    found = walk(Steps(*BANK), ["balance"], DOWN)

    assert found.nodes == {"balance": 0, "ctas": 1, "report": 1, "audit": 1}
    assert set(found.steps) == set(BANK[5:])


def test_both_directions_exclude_other_outputs_of_the_sources() -> None:
    found = walk(Steps(*BANK), ["credits"], BOTH)

    assert set(found.nodes) == {
        "credits",
        "credit",
        "transfers",
        "ingest",
        "add",
        "balance",
        "ctas",
        "report",
        "audit",
    }
    assert found.complete


def test_walk_can_start_from_a_job() -> None:
    found = walk(Steps(*BANK), ["add"], UP, depth=1)

    assert found.nodes == {"add": 0, "credits": 1, "debits": 1}
    assert found.truncated_by == "depth"


def test_several_starts_are_one_walk() -> None:
    found = walk(Steps(*BANK), ["credits", "debits"], UP, depth=1)

    assert found.nodes == {"credits": 0, "debits": 0, "credit": 1, "debit": 1, "transfers": 1}


def test_depth_counts_jobs_and_reports_truncation() -> None:
    assert walk(Steps(*BANK), ["balance"], UP, depth=1).truncated_by == "depth"
    assert walk(Steps(*BANK), ["balance"], UP, depth=3).truncated_by is None


def test_walk_of_depth_zero_finds_only_its_start() -> None:
    found = walk(Steps(*BANK), ["balance"], UP, depth=0)

    assert found.nodes == {"balance": 0}
    assert found.truncated_by == "depth"


def test_cycle_terminates_and_is_complete() -> None:
    circle = Steps(WalkStep("a", "one", "b"), WalkStep("b", "two", "a"))

    found = walk(circle, ["a"], DOWN)

    assert found.nodes == {"a": 0, "one": 1, "b": 1, "two": 2}
    assert len(found.steps) == 2
    assert found.complete


def test_cycle_at_the_depth_limit_is_closed() -> None:
    circle = Steps(WalkStep("a", "one", "b"), WalkStep("b", "one", "a"))

    found = walk(circle, ["a"], DOWN, depth=1)

    assert len(found.steps) == 2
    assert found.complete


def test_table_that_a_job_reads_and_writes_is_one_node() -> None:
    found = walk(Steps(WalkStep("a", "merge", "a")), ["a"], UP)

    assert found.nodes == {"a": 0, "merge": 1}
    assert found.complete


def test_hub_is_cut_at_the_node_limit() -> None:
    hub = Steps(*(WalkStep("hub", f"job{number}", f"table{number}") for number in range(100)))

    found = walk(hub, ["hub"], DOWN, most=21)

    assert len(found.nodes) == 21
    assert len(found.steps) == 10
    assert found.truncated_by == "nodes"


def test_dense_graph_is_cut_at_the_step_limit() -> None:
    dense = Steps(
        *(WalkStep(f"from{one}", "job", f"to{two}") for one in range(150) for two in range(150))
    )

    found = walk(dense, ["job"], BOTH, most=1000)

    assert found.truncated_by == "edges"
    assert len(found.steps) == LEAST_STEPS


def test_graph_within_the_node_limit_is_complete_in_both_directions() -> None:
    """Both directions share one limit: what one does not use is left for the other."""
    chain = Steps(*(WalkStep(f"t{number}", f"j{number}", f"t{number + 1}") for number in range(6)))
    hub = Steps(*(WalkStep(f"from{number}", "job", "to") for number in range(90)))

    for start in ("t0", "t1", "t3", "t6"):
        found = walk(chain, [start], BOTH, most=13)
        assert (len(found.nodes), found.truncated_by) == (13, None)
        assert len(walk(chain, [start], BOTH, most=12).nodes) <= 12
    assert walk(hub, ["job"], BOTH, most=92).complete
    assert walk(hub, ["job"], BOTH, most=91).truncated_by == "nodes"
    assert walk(hub, ["job"], BOTH, most=1).truncated_by == "nodes"


def test_graph_is_queried_once_per_level() -> None:
    graph = Steps(*BANK)

    walk(graph, ["balance"], UP)

    assert graph.asked == [("balance",), ("credits", "debits"), ("transfers",)]
