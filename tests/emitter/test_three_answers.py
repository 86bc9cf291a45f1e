"""FLIP-276's three answers from the inputs' own barriers."""

from strandline_spark.consistency.aligned.decisions import Decision, decide


def test_job_proceeds_without_a_common_barrier() -> None:
    assert decide({"credits": {1: "10", 2: "11"}, "debits": {1: "20"}}, 1) == Decision("PROCEED")


def test_job_checkpoints_at_the_next_common_barrier() -> None:
    decision = decide({"credits": {1: "10", 2: "11", 3: "12"}, "debits": {1: "20", 2: "21"}}, 1)

    assert decision == Decision("CHECKPOINT", 2, (), {"credits": "11", "debits": "21"})


def test_job_skips_a_barrier_that_one_input_never_completed() -> None:
    decision = decide({"credits": {1: "10", 2: "11", 3: "12"}, "debits": {1: "20", 3: "22"}}, 1)

    assert decision == Decision("ABORT", 3, (2,), {"credits": "12", "debits": "22"})


def test_job_waits_for_an_input_without_barriers() -> None:
    assert decide({"credits": {1: "10"}, "debits": {}}, None) == Decision("PROCEED")


def test_a_job_without_inputs_never_checkpoints() -> None:
    assert decide({}, None) == Decision("PROCEED")
