"""Every route declares the scope that its key needs; without one the program does not start."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Query

from fixtures.operations import operations
from strandline.api.http.route import Route
from strandline.questions.parameters import NamedQuery


def test_route_without_a_session_is_refused() -> None:
    router = APIRouter(route_class=Route)

    def get_new(query: Annotated[NamedQuery, Query()]) -> None:
        """Something new."""

    with pytest.raises(TypeError, match="/api/v2/new has no session, so no scope"):
        router.get("/api/v2/new")(get_new)


def test_only_probes_need_no_scope() -> None:
    assert {one.path for one in operations() if one.scope == "open"} == {"/healthz", "/readyz"}
