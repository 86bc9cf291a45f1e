"""The filters that lists have in common: state, since and until."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from strandline.api.http.operations import Ask, Choice, Parameter, Text
from strandline.core.openlineage.moments import EXAMPLES, moment
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import STATES, Filter, states_called
from strandline.store.questions.selection import FacetValue, facet_value


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
        return {
            "type": "string",
            "minLength": 1,
            "examples": EXAMPLES.replace(" or ", ", ").split(", "),
        }


SINCE = Parameter("since", f"From this time on: {EXAMPLES}", When())
UNTIL = Parameter("until", "Before this time", When())
STATE = Parameter(
    "state", f"Of runs in this state: {', '.join(STATES)}, or several with commas; those that have ended in the span",
    States(),
)  # fmt: skip
SPAN = (STATE, SINCE, UNTIL)


@dataclass(frozen=True)
class FacetHas:
    """KEY.FIELD=VALUE."""

    def parse(self, text: str) -> FacetValue:
        """Where to look, and for what."""
        return facet_value(Text(1).parse(text))

    def schema(self) -> Mapping[str, Any]:
        """A text with a key, fields and a value."""
        return {"type": "string", "pattern": r"^[^.=\x00]+(\.[^.=\x00]+)*=[^\x00]*$"}


SELECTION = (
    Parameter("namespace", "Show only nodes of this namespace; `*` stands for anything", Text(1), many=True,
              example="prod*"),
    Parameter("kind", "Show only nodes of this kind", Choice(("dataset", "job", "column")), many=True),
    Parameter("tag", "Show only nodes with this tag (KEY, or KEY=VALUE; `*` stands for anything)", Text(1), many=True,
              example="pii"),
    Parameter("facet", "Show only nodes with this value in a facet: KEY.FIELD=VALUE, `*` stands for anything", FacetHas(),
              many=True, example="jobType.processingType=STREAMING"),
)  # fmt: skip
"""What a graph shows. What lies behind a node that is not shown stays, joined by edges with `through`."""


def filter_of(ask: Ask) -> Filter:
    """What a list is asked for."""
    given = ask.given
    since, until = (
        None if given[name] is None else micros_of(given[name]) for name in ("since", "until")
    )
    as_of = given.get("asOf")
    past = None if as_of is None or as_of >= ask.now else micros_of(as_of)
    return Filter(given.get("namespace"), given["state"] or frozenset(), since, until, past)
