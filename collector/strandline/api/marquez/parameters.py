"""The parameters that Marquez' clients send, read as they send them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.api.http.operations import Ask, Parameter, Text, Whole
from strandline.core.openlineage.times import micros_of

API = "/api/v1"
N = f"{API}/namespaces/{{namespace}}"
D = f"{N}/datasets/{{dataset}}"
J = f"{N}/jobs/{{job}}"
MOST = 1_000  # of one page


@dataclass(frozen=True)
class AnyCaseFlag:
    """True or False, in any case: marquez-python sends them as Python writes them."""

    def parse(self, text: str) -> bool:
        """The truth value."""
        if text.lower() not in ("true", "false"):
            raise ValueError("is neither true nor false")
        return text.lower() == "true"

    def schema(self) -> Mapping[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class AnyCaseWord:
    """One of a few words in any case, or nothing: Marquez' page writes them in upper case."""

    words: tuple[str, ...]

    def parse(self, text: str) -> str:
        """The word in upper case."""
        if text and text.upper() not in self.words:
            raise ValueError(f"is not one of {', '.join(self.words)}")
        return text.upper()

    def schema(self) -> Mapping[str, Any]:
        """An enumeration."""
        return {"type": "string", "enum": ["", *self.words]}


NAMESPACE = Parameter("namespace", "The namespace", Text(), required=True)
DATASET = Parameter("dataset", "The dataset's name", Text(), required=True)
JOB = Parameter("job", "The job's name", Text(), required=True)
FIELD = Parameter("field", "The column's name", Text(1), required=True)
TAG = Parameter("tag", "The tag's name", Text(1), required=True)
SOURCE = Parameter("source", "The source's name", Text(1), required=True)
RUN = Parameter("id", "The id of the run", Text(1), required=True)
VERSION = Parameter("version", "The id of the version", Text(1), required=True)
LIMIT = Parameter(
    "limit", f"How many at most; never more than {MOST}", Whole(0, 2**31 - 1), default=100
)
OFFSET = Parameter(
    "offset", "How many to leave out at the beginning", Whole(0, 2**31 - 1), default=0
)
PAGE = (LIMIT, OFFSET)
NODE = Parameter("nodeId", "dataset:NAMESPACE:NAME or job:NAMESPACE:NAME", Text(1), required=True)
DEPTH = Parameter("depth", "How many jobs on the way", Whole(0, 1_000), default=20)
OBJECT: Mapping[str, Any] = {"type": "object"}


def page_of(ask: Ask) -> tuple[int, int]:
    """Limit and offset."""
    return min(ask.given["limit"], MOST), ask.given["offset"]


def now_of(ask: Ask) -> int:
    """The moment of the request."""
    return micros_of(ask.now)
