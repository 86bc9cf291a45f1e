"""The circuit opens after a failure, for ever longer, and closes when an attempt goes through."""

from __future__ import annotations

from strandline_spark.delivery.circuit_breaker import Circuit


def test_it_opens_for_twice_as_long_after_each_failure_up_to_half_a_minute() -> None:
    circuit, now, pauses = Circuit(0.5), 100.0, []
    for _ in range(9):
        circuit.failed(now)
        pauses.append(circuit.wait(now))
        now += pauses[-1]

    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_it_is_closed_again_after_an_attempt_that_goes_through_and_begins_anew() -> None:
    circuit = Circuit(0.5)
    circuit.failed(100.0)
    circuit.failed(101.0)
    assert (circuit.is_open(101.1), circuit.failing) == (True, True)

    circuit.succeeded()

    assert (circuit.is_open(101.1), circuit.failing, circuit.wait(101.1)) == (False, False, 0.0)
    circuit.failed(102.0)
    assert circuit.wait(102.0) == 0.5
