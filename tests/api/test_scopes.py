"""Every operation names the scope that a key needs to ask it; a program with one that names none does not start."""

from typing import Any

import pytest

from strandline.api.http.operations import Ask, Operation, operations


def nothing(_: Ask) -> None:
    """Answer nothing."""


def test_an_operation_without_a_scope_does_not_exist() -> None:
    without: Any = Operation

    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'scope'"):
        without("GET", "/api/v2/new", "Something new", nothing)


@pytest.mark.parametrize("scope", ["", "write", None])
def test_a_scope_that_no_key_can_have_is_refused(scope: Any) -> None:
    with pytest.raises(TypeError, match="GET /api/v2/new has no scope; it is one of read, ingest, admin, open"):
        Operation("GET", "/api/v2/new", "Something new", nothing, scope=scope)


def test_only_the_probes_are_open() -> None:
    assert {one.path for one in operations() if one.scope == "open"} == {"/healthz", "/readyz"}
