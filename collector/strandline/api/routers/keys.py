"""API keys: make one, list them, end one; what `strandline keys --url` asks."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON
from strandline.api.http.route import Route, refused
from strandline.api.http.session import WholeAdminSession
from strandline.core.access.granted import faults_of
from strandline.errors import ParameterError
from strandline.questions.parameters import Word
from strandline.questions.versions import WantedKey
from strandline.store.api_keys import add_key, keys_of, revoke_key
from strandline.store.sql.engine import read_from

router = APIRouter(prefix="/api/v2", tags=["administration"], route_class=Route)


class MadeKey(TypedDict):
    """A key; this answer is the only place that shows it."""

    name: str
    key: str


class Keys(TypedDict):
    """All keys."""

    items: list[JSON]


@router.post("/keys", status_code=201, response_model=MadeKey, responses=refused(409))
def post_key(wanted: WantedKey, session: WholeAdminSession) -> dict[str, str]:
    """Make an API key; it is shown once."""
    if faults := faults_of(wanted.name, wanted.scopes, wanted.namespaces):
        raise ParameterError("; ".join(faults))
    ends = None if wanted.days is None else session.now + timedelta(days=wanted.days)
    with session.whole_engine.begin() as connection:
        key = add_key(connection, wanted.name, session.now, wanted.scopes, wanted.namespaces, ends)
    return {"name": wanted.name, "key": key}


@router.get("/keys", response_model=Keys)
def get_keys(session: WholeAdminSession) -> dict[str, Any]:
    """All API keys with their scopes, namespaces and times."""
    with read_from(session.whole_engine) as connection:
        return {"items": [key.document for key in keys_of(connection)]}


@router.delete("/keys/{name:name}", status_code=204, responses=refused(404))
def delete_key(
    name: Annotated[Word, Path(description="The name of the key, or its id")],
    session: WholeAdminSession,
) -> None:
    """Revoke an API key, within five seconds on every server."""
    with session.whole_engine.begin() as connection:
        revoke_key(connection, name, session.now)
