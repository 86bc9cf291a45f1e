"""The session of a request: its dependency's type is the scope that a key needs.

A router declares no route without one, because its class refuses that when it is made.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from starlette.datastructures import State

from strandline.api.http.auth import ACCESS
from strandline.core.access.granted import NOTHING, Access
from strandline.core.access.hidden import visible
from strandline.errors import ForbiddenError
from strandline.questions.reader import Reader
from strandline.store.sql.narrowed import narrowed
from strandline.store.versions.hidden_names import names_hidden

# What an API key may be for. read: asks and takes leases; ingest: sends events and registers its
# jobs; admin: also changes what others rely on. open: no key is needed at all, so the answer must
# not name anything that is stored.
Scope = Literal["read", "ingest", "admin", "open"]


@dataclass(frozen=True)
class Session(Reader):
    """A request that is permitted, and a reader of what its key sees."""

    request: Request

    @property
    def state(self) -> State:
        """The application's state."""
        state: State = self.request.app.state
        return state

    def visible(self, answer: Any) -> Any:
        """Return an answer, as JSON has it, without what the request's key does not see."""
        with self.follower.model() as model:
            names = names_hidden(model, self.access)
        return visible(answer, self.access, names)

    def refuse_other_namespace(self, namespace: str) -> None:
        """Raise a ForbiddenError where a change names a namespace that is not the key's."""
        if not self.access.allows(namespace):
            raise ForbiddenError(f"this key may not change namespace {namespace!r}")


@dataclass(frozen=True)
class SessionOf:
    """Gives a route its session.

    `whole`: the route is about no namespace, so a key needs all of them.
    """

    scope: Scope
    whole: bool = False

    async def __call__(self, request: Request) -> Session:
        """Return the session of a request that `permit` has let through."""
        return self.of(request)

    def of(self, request: Request) -> Session:
        """Return the session of a request that `permit` has let through."""
        access: Access = request.scope[ACCESS]
        visible, state = NOTHING if self.scope == "open" else access, request.app.state
        engine = narrowed(state.engine, visible)
        now, settings = datetime.now(UTC), state.settings
        return Session(access, engine, state.engine, state.follower, now, settings, request)

    def permit(self, request: Request) -> None:
        """Raise a RateError or ForbiddenError where the request's key may not ask this."""
        access: Access = request.scope[ACCESS].for_scope(self.scope)
        request.scope[ACCESS] = access
        if self.scope == "open":
            return
        request.app.state.rates.spend(client_of(request), self.scope)
        if not access.may(self.scope):
            raise ForbiddenError(
                f"this needs a key with scope {self.scope}, and this one has {access.scopes_text}"
            )
        if self.whole and not access.everything:
            raise ForbiddenError("this needs a key for all namespaces: --namespace '*'")


def client_of(request: Request) -> str:
    """Return who asks: the name of a key, or an address."""
    access: Access = request.scope[ACCESS]
    return access.who or address_of(request)


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    return request.client.host if request.client else ""


OpenSession = Annotated[Session, Depends(SessionOf("open"))]
ReadSession = Annotated[Session, Depends(SessionOf("read"))]
WholeSession = Annotated[Session, Depends(SessionOf("read", whole=True))]
IngestSession = Annotated[Session, Depends(SessionOf("ingest"))]
WholeIngestSession = Annotated[Session, Depends(SessionOf("ingest", whole=True))]
AdminSession = Annotated[Session, Depends(SessionOf("admin"))]
WholeAdminSession = Annotated[Session, Depends(SessionOf("admin", whole=True))]
