"""The board shows the newest barriers, and the strong one with its neighbours."""

import pytest

from strandline.api.routers.board import _window


@pytest.mark.parametrize(
    ("barriers", "strong", "most", "shown", "gap_after"),
    [
        (10, 9, 4, [7, 8, 9, 10], None),
        (10, None, 4, [7, 8, 9, 10], None),
        (100, 50, 8, [48, 49, 50, 51, 97, 98, 99, 100], 51),
        (100, 1, 6, [1, 2, 97, 98, 99, 100], 2),
        (3, 1, 2, [1, 3], 1),
        (3, 1, 1, [3], None),
        (9, 99, 4, [6, 7, 8, 9], None),
    ],
)
def test_the_strong_barrier_is_always_in_view(
    barriers: int, strong: int | None, most: int, shown: list[int], gap_after: int | None
) -> None:
    assert _window(range(1, barriers + 1), strong, most) == (shown, gap_after)
