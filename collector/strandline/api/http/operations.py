"""How a module of `endpoints` or `marquez` declares what it answers.

`OPERATIONS`, a tuple of `Operation`, found by `operations()`.

An operation gets an `Ask` with its parameters parsed and checked; it returns what JSON should say
(None: 204 without a body), a Response of its own, or raises an error of the tree. The same
declaration makes the page /docs.
"""

import importlib
import pkgutil
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, get_args

from sqlalchemy import Engine
from starlette.requests import Request
from structlog.typing import FilteringBoundLogger

from strandline.api.http.formats import FORMATS
from strandline.core.access.granted import Access
from strandline.core.openlineage.moments import exact_moment
from strandline.errors import StrandlineError
from strandline.metrics import Metrics
from strandline.runtime.job_memory import JobMemory
from strandline.settings import Settings


class ParameterError(StrandlineError):
    """A request's parameter is missing or cannot be read."""

    code = "invalid_parameter"


class Kind(Protocol):
    """How a parameter's text becomes a value, and what its schema is."""

    def parse(self, text: str) -> Any:
        """The value; ValueError with the reason if there is none."""

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the text's meaning."""


@dataclass(frozen=True)
class Text:
    """Any text; `shortest` is 1 where an empty one has no meaning."""

    shortest: int = 0

    def parse(self, text: str) -> str:
        """The text, unless a database could not hold it."""
        if len(text) < self.shortest:
            raise ValueError("is empty")
        if "\x00" in text or (
            not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text)
        ):
            raise ValueError("has a character that no name can have")
        return text

    def schema(self) -> Mapping[str, Any]:
        """A string without the one character that PostgreSQL cannot hold."""
        schema = {"type": "string", "pattern": "^[^\\x00]*$"}
        return schema | ({"minLength": self.shortest} if self.shortest else {})


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int = 0
    high: int = 2**63 - 1

    def parse(self, text: str) -> int:
        """The number."""
        number = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"is not a whole number from {self.low} to {self.high}")
        return number

    def schema(self) -> Mapping[str, Any]:
        """An integer with both bounds."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def parse(self, text: str) -> str:
        """The word."""
        if text not in self.words:
            raise ValueError(f"is not one of {', '.join(self.words)}")
        return text

    def schema(self) -> Mapping[str, Any]:
        """An enumeration."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Moment:
    """A time as in RFC 3339; UTC where it names no zone."""

    def parse(self, text: str) -> datetime:
        """The time, in UTC."""
        return exact_moment(text)

    def schema(self) -> Mapping[str, Any]:
        """A date-time."""
        return {"type": "string", "format": "date-time"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of the query, or of the path where the path names it."""

    name: str
    about: str
    kind: Kind = Text()
    required: bool = False
    default: Any = None
    many: bool = False  # it may be given several times; the values are a tuple
    example: str | None = None


MOST_VALUES = 100  # of one parameter that may be given several times
LIMIT = Parameter("limit", "How many at most", Whole(1, 1000), default=100)
CURSOR = Parameter("cursor", "`nextCursor` of the page before", Text(1))


@dataclass(frozen=True)
class Ask:
    """What an operation is asked.

    Its parameters by name (absent ones have their default), its body, the moment.

    `engine` shows what `access` sees and nothing else, whatever is asked of it. `whole_engine`
    shows everything: it is for what an answer is computed from and does not name, as the leases
    that keep a snapshot.
    """

    engine: Engine
    whole_engine: Engine
    access: Access
    settings: Settings
    log: FilteringBoundLogger
    metrics: Metrics
    graph: JobMemory
    request: Request
    given: Mapping[str, Any]
    body: Any
    now: datetime


# What an API key may be for. read: asks and takes leases; ingest: sends events and registers its jobs;
# admin: also changes what others rely on. open: no key is needed at all, so the answer must not
# name anything that is stored.
Scope = Literal["read", "ingest", "admin", "open"]


@dataclass(frozen=True)
class Operation:
    """A method of a path.

    Path parameters stand in braces; every path segment may be empty or percent-encoded.

    `run` may be a coroutine function: then it runs on the event loop and reads the body by itself.
    Otherwise a thread runs it, after `wait`, which waits on the event loop for what may take long.
    `body` is the JSON Schema of the request's body (None: it takes none; it may be left out if
    `body_optional`), `answer` that of its answer; `refusals` are the statuses of problem details
    that it may give besides 400, 401 and 503. `scope` is what an API key needs to ask it; it has no
    default, so a program with an operation that names none does not start. `whole`: it is about no
    namespace, so a key needs all of them. `export`: its answer is a "list" or a "graph", which can
    be had in other formats as well. Not `asks_store`: it waits for no question.
    """

    method: str
    path: str
    about: str
    run: Callable[[Ask], Any]
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    answer: Mapping[str, Any] | None = None
    status: int = 200
    refusals: tuple[int, ...] = ()
    media: str = "application/json"
    empty: int | None = (
        None  # the status of a success with nothing to tell, where that is another one
    )
    export: str | None = None
    scope: Scope = field(kw_only=True)
    whole: bool = field(default=False, kw_only=True)
    wait: Callable[[Ask], Awaitable[None]] | None = field(default=None, kw_only=True)
    body_optional: bool = field(default=False, kw_only=True)
    asks_store: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a scope that does not exist (nothing could be asked).

        Give what can be exported its `format`.
        """
        if self.scope not in get_args(Scope):
            raise TypeError(
                f"{self.method} {self.path} has no scope; it is one of {', '.join(get_args(Scope))}"
            )
        if self.export is not None:
            words = FORMATS[self.export]
            about = f"{', '.join(words[:-1])} or {words[-1]}; without it as the Accept header says, else json"
            object.__setattr__(
                self, "parameters", (*self.parameters, Parameter("format", about, Choice(words)))
            )

    @property
    def is_question(self) -> bool:
        """Whether it only asks the store, so that it takes a thread of questions and may be stopped."""
        asks = self.method == "GET" or self.scope == "read"
        return asks and self.asks_store and self.scope != "open"

    @property
    def columns(self) -> tuple[str, ...]:
        """Of a list the properties that its items always have."""
        items = ((self.answer or {}).get("properties") or {}).get("items") or {}
        return tuple((items.get("items") or {}).get("properties") or ())


ROOMS = ("endpoints", "marquez")  # the packages whose modules declare operations


def operations() -> tuple[Operation, ...]:
    """All operations of the modules of `ROOMS` (and of packages within them), in the order of the modules' names."""
    found: list[Operation] = []
    for room in ROOMS:
        package = importlib.import_module(f"strandline.api.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            found += getattr(importlib.import_module(module.name), "OPERATIONS", ())
    return tuple(found)
