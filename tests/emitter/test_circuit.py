"""The circuit opens for longer after each failure and closes after a success."""

from __future__ import annotations

from strandline_spark.delivery.circuit_breaker import Circuit


def test_circuit_pause_doubles_up_to_half_a_minute() -> None:
    circuit, now, pauses = Circuit(0.5), 100.0, []
    for _ in range(9):
        circuit.failed(now)
        pauses.append(circuit.wait(now))
        now += pauses[-1]

    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_circuit_closes_and_resets_after_a_success() -> None:
    circuit = Circuit(0.5)
    circuit.failed(100.0)
    circuit.failed(101.0)
    assert (circuit.is_open(101.1), circuit.failing) == (True, True)

    circuit.succeeded()

    assert (circuit.is_open(101.1), circuit.failing, circuit.wait(101.1)) == (False, False, 0.0)
    circuit.failed(102.0)
    assert circuit.wait(102.0) == 0.5
