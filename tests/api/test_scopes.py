"""Every operation declares the scope that its key needs; without one the program does not start."""

from typing import Any

import pytest

from strandline.api.http.operations import Ask, Operation, operations


def nothing(_: Ask) -> None:
    """Answer nothing."""


def test_every_operation_has_a_scope() -> None:
    without: Any = Operation

    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'scope'"):
        without("GET", "/api/v2/new", "Something new", nothing)


@pytest.mark.parametrize("scope", ["", "write", None])
def test_unknown_scope_is_rejected(scope: Any) -> None:
    with pytest.raises(
        TypeError, match="GET /api/v2/new has no scope; it is one of read, ingest, admin, open"
    ):
        Operation("GET", "/api/v2/new", "Something new", nothing, scope=scope)


def test_only_probes_need_no_scope() -> None:
    assert {one.path for one in operations() if one.scope == "open"} == {"/healthz", "/readyz"}
