"""The filters that lists have in common: state, since and until."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from strandline.api.http.operations import Ask, Parameter
from strandline.core.openlineage.moments import EXAMPLES, moment
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import STATES, Filter, states_called


@dataclass(frozen=True)
class States:
    """States of runs, with commas."""

    def parse(self, text: str) -> frozenset[str]:
        """The states."""
        return states_called(text.split(","))

    def schema(self) -> Mapping[str, Any]:
        """States of runs in any case, with commas."""
        one = "|".join(STATES)
        return {"type": "string", "pattern": f"^ *({one}) *(, *({one}) *)*$"}


@dataclass(frozen=True)
class When:
    """A moment: a time as in RFC 3339, or one that is counted from now."""

    def parse(self, text: str) -> datetime:
        """The time, in UTC."""
        return moment(text, datetime.now(UTC))

    def schema(self) -> Mapping[str, Any]:
        """A text; examples say which."""
        return {"type": "string", "minLength": 1, "examples": EXAMPLES.replace(" or ", ", ").split(", ")}


SINCE = Parameter("since", f"From this time on: {EXAMPLES}", When())
UNTIL = Parameter("until", "Before this time", When())
STATE = Parameter(
    "state", f"Of runs in this state: {', '.join(STATES)}, or several with commas; those that have ended in the span",
    States(),
)  # fmt: skip
SPAN = (STATE, SINCE, UNTIL)


def filter_of(ask: Ask) -> Filter:
    """What a list is asked for."""
    given = ask.given
    since, until = (None if given[name] is None else micros_of(given[name]) for name in ("since", "until"))
    return Filter(given.get("namespace"), given["state"] or frozenset(), since, until)
