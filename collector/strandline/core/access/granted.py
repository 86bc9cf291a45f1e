"""The rights of a request.

The scopes and namespace patterns of its key, as one value that every read is narrowed by.

A pattern is a namespace in which `*` stands for any text and `?` for one character. The pattern `*`
alone is everything.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from strandline.errors import ForbiddenError

Scope = Literal["read", "ingest", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
EVERY = "*"


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of one key or token.

    `who` names it in the audit log; `admin` includes the other scopes.

    `parts`: what was granted one by one, where not every scope holds in every namespace.
    """

    who: str
    scopes: frozenset[Scope]
    patterns: tuple[str, ...]
    parts: tuple["Access", ...] = ()

    @classmethod
    def of_parts(cls, who: str, parts: Sequence["Access"]) -> "Access":
        """All that was granted; what may be asked with which scope, `for_scope` says."""
        scopes = frozenset[Scope]().union(*(part.scopes for part in parts))
        return cls(
            who,
            scopes,
            tuple(dict.fromkeys(pattern for part in parts for pattern in part.patterns)),
            tuple(parts),
        )

    def for_scope(self, scope: str) -> "Access":
        """Return the part of the rights that counts for an operation of this scope.

        It is the namespaces for which the scope was granted.
        """
        if not self.parts:
            return self
        fit = [part for part in self.parts if part.may(scope)]
        if not fit:
            return Access(self.who, self.scopes, ())
        shared = frozenset(scope for scope in SCOPES if all(part.may(scope) for part in fit))
        return Access(self.who, shared, Access.of_parts(self.who, fit).patterns)

    @property
    def everything(self) -> bool:
        """True if no namespace is hidden."""
        return EVERY in self.patterns

    def may(self, scope: str) -> bool:
        """Return whether an operation of this scope may be asked."""
        return scope == "open" or scope in self.scopes or "admin" in self.scopes

    @property
    def scopes_text(self) -> str:
        """Its scopes for a sentence."""
        return ", ".join(scope for scope in SCOPES if scope in self.scopes) or "none"

    def allows(self, namespace: str) -> bool:
        """Return whether what is in this namespace may be seen, or written."""
        return any(_matches(pattern, namespace) for pattern in self.patterns)

    def allows_text(self, text: str) -> bool:
        """Return whether `NAMESPACE:NAME` may be seen, wherever its namespace ends."""
        return self.everything or any(
            self.allows(text[: colon.start()]) for colon in re.finditer(":", text)
        )

    def require(self, named: Iterable[tuple[str, str]]) -> None:
        """Raise a ForbiddenError unless all of these (namespace, name) may be seen."""
        hidden = sum(not self.allows(namespace) for namespace, _ in named)
        if hidden:
            raise ForbiddenError(
                f"{hidden} of the tables and jobs are in namespaces that this key does not see"
            )


EVERYTHING = Access("", frozenset(SCOPES), (EVERY,))
NOTHING = Access("", frozenset(), ())


def like_of(pattern: str) -> str:
    """Return a pattern as PostgreSQL's LIKE with `!` as its escape."""
    escaped = re.sub(r"([!%_])", r"!\1", pattern)
    return escaped.replace("*", "%").replace("?", "_")


def glob_of(pattern: str) -> str:
    """Return a pattern as SQLite's GLOB, to which a bracket is not itself."""
    return pattern.replace("[", "[[]")


def is_key_name(name: str) -> bool:
    """Return whether a key can be called so."""
    return bool(name.strip()) and name.isprintable()


def faults_of(name: str, scopes: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the faults of a new key's name, scopes and patterns."""
    no_name = "the name is empty, or not one line: say who will use the key"
    faults = [] if is_key_name(name) else [no_name]
    faults += [
        f"scope {scope!r} is not one of {', '.join(SCOPES)}"
        for scope in scopes
        if scope not in SCOPES
    ]
    faults += [] if scopes else [f"a key needs a scope: {', '.join(SCOPES)}"]
    faults += [] if patterns else ["a key needs a namespace, or a pattern of namespaces; * is all"]
    return faults + [
        f"namespace {pattern!r} is not one line of text"
        for pattern in patterns
        if not pattern or not pattern.isprintable()
    ]


@lru_cache(maxsize=10_000)
def _matches(pattern: str, namespace: str) -> bool:
    return _compiled(pattern).fullmatch(namespace) is not None


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(sign) or re.escape(sign) for sign in pattern), re.DOTALL)
