"""Ways between two nodes, of steps that walks found."""

from typing import Any

from strandline.core.routes import routes
from strandline.core.walk import WalkStep


class Once(list[Any]):
    """Nodes that may be gone through, but in which nothing may be looked for one by one."""

    def __contains__(self, node: object) -> bool:
        raise AssertionError(f"{node} was looked for among all")


def test_ends_are_not_searched_for_each_step() -> None:
    """Of thousands of columns each is an end, and each has a step."""
    steps = [WalkStep(f"a{n}", "job", f"b{n}") for n in range(3)]

    found = routes(steps, Once(f"a{n}" for n in range(3)), Once(f"b{n}" for n in range(3)))

    assert list(found.steps) == steps
    assert found.shortest == ["a0", "job", "b0"]
