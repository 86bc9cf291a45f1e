"""Whether a key may ask an operation, and what is left of the answer for one that does not see every namespace."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from strandline.api.http.auth import ACCESS
from strandline.api.http.operations import Operation
from strandline.core.access.granted import Access
from strandline.core.access.hidden import visible
from strandline.errors import ForbiddenError
from strandline.store.versions.hidden_names import names_hidden


def refuse_unpermitted(operation: Operation, access: Access) -> None:
    """Raise a ForbiddenError unless the scope and the namespaces of the key are enough."""
    if not access.may(operation.scope):
        raise ForbiddenError(
            f"this needs a key with scope {operation.scope}, and this one has {access.scopes_text}"
        )
    if operation.whole and not access.everything:
        raise ForbiddenError(
            "this is about no namespace, so it needs a key for all of them: --namespace '*'"
        )


def refuse_other_namespace(operation: Operation, access: Access, given: Mapping[str, Any]) -> None:
    """Raise a ForbiddenError where a change names a namespace that is not the key's."""
    namespace = given.get("namespace")
    if (
        operation.scope in ("ingest", "admin")
        and isinstance(namespace, str)
        and not access.allows(namespace)
    ):
        raise ForbiddenError(f"this key changes nothing in namespace {namespace!r}")


def seen_of(answer: Any, request: Request) -> Any:
    """An answer, as JSON has it, without what the request's key does not see."""
    access: Access = request.scope[ACCESS]
    with request.app.state.follower.model() as model:
        names = names_hidden(model, access)
    return visible(answer, access, names)
