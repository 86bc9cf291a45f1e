"""The checker of the aligned bank's tables, which judges the demo under kills."""

from collections import Counter
from collections.abc import Iterable

import pytest

from worlds.aligned_tables import INPUTS, MAX_BEHIND, Added, AlignedTables, expected_of, faults_of

LAST = 20
EACH = range(1, LAST + 1)


def bank(
    credited: Iterable[int] = EACH, debited: Iterable[int] = EACH, balance: Iterable[int] = EACH
) -> AlignedTables:
    """A bank in which one transfer is made at each barrier.

    Its derived tables hold these barriers, and are right.
    """
    transfers = [
        Added(one, f"transfers {one}", {}, [{"payee": 1, "payer": 2, "amount": one}])
        for one in EACH
    ]
    found = AlignedTables({"bank.transfers": transfers})
    for name, barriers in (("credits", credited), ("debits", debited), ("balance", balance)):
        found.snapshots[f"aligned.{name}"] = [
            Added(
                one,
                f"{name} {one}",
                {f"lake.{table}": f"{table.split('.')[1]} {one}" for table in INPUTS[name]},
                [],
            )
            for one in barriers
        ]
    expected = expected_of(found)
    found.sums = {
        name: {one: Counter(sums) for one, sums in expected[name].items()} for name in INPUTS
    }
    return found


def without(*missing: int) -> list[int]:
    """All barriers but these."""
    return [one for one in EACH if one not in missing]


def test_a_bank_without_gaps_has_no_fault() -> None:
    assert faults_of(bank()) == []


@pytest.mark.parametrize("barriers", [without(4), without(4, 5), [1, 3, 2, 4], [1, 2, 2, 3]])
def test_missing_repeated_or_unordered_barrier_is_a_fault(barriers: list[int]) -> None:
    assert faults_of(bank(balance=barriers)) == [f"balance: its barriers are {barriers}"]


def test_a_new_job_takes_the_newest_barrier_until_it_has_caught_up() -> None:
    assert faults_of(bank(balance=without(1, 2, 3, 5, 6, 8))) == []
    assert faults_of(bank(balance=without(1, 2, 3, 5, 6, 9))) != []


def test_a_job_that_is_far_behind_drains() -> None:
    assert faults_of(bank(balance=without(*range(4, 4 + MAX_BEHIND)))) == []
    assert faults_of(bank(balance=without(*range(4, 3 + MAX_BEHIND)))) != []


def test_drained_job_passes_fewer_barriers_until_it_has_caught_up() -> None:
    drained = range(4, 4 + MAX_BEHIND)  # 9 is taken, then 11 and 13 with one passed before each

    assert faults_of(bank(balance=without(*drained, drained[-1] + 2))) == []
    assert faults_of(bank(balance=without(*drained, drained[-1] + 2, drained[-1] + 4))) == []
    assert faults_of(bank(balance=without(*drained, drained[-1] + 3))) != []
    assert faults_of(bank(balance=without(*drained, drained[-1] + 2, drained[-1] + 5))) != []


def test_only_a_restarted_job_passes_fewer_barriers() -> None:
    found = bank(debited=without(4), balance=without(4))  # balance lacks what its input lacks

    assert faults_of(found, rejoined={"debits"}) == []
    assert faults_of(found) == [f"debits: its barriers are {without(4)}"]


def test_missing_input_snapshot_or_wrong_sum_is_a_fault() -> None:
    found = bank(debited=without(LAST))
    found.sums["credits"][3][1] += 1

    assert [fault.split(" was made")[0] for fault in faults_of(found)] == [
        "credits: barrier 3 does not hold what its base table says",
        f"balance: barrier {LAST}",
    ]
