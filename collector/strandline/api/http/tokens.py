"""Tokens of an identity provider (JWT) as keys.

Verified here and now, and granted what the settings say of a claim's values.

PyJWT verifies. What it is let to take comes from the settings alone: signatures with a key pair,
one issuer, its audiences; an end is required. Nothing that the token says of itself chooses more
than one of the issuer's own keys.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jwt

from strandline.api.http.key_sets import Jwk, KeySet, reader_of
from strandline.core.access.granted import Access, Scope
from strandline.errors import UnauthorizedError
from strandline.settings import Settings

REQUIRED = ("exp", "iss", "aud", "sub")
LONGEST = 16_384
LONGEST_SUBJECT = 200
MOST_SHOWN = 200


def is_token(key: str) -> bool:
    """Return whether this has the form of a token.

    Three parts with dots between, which no key of ours has.

    >>> is_token("eyJhbGciOiJSUzI1NiJ9.e30.c2ln"), is_token("st_00000000_secret")
    (True, False)
    """
    return key.count(".") == 2


class Tokens:
    """Reads what a token may do; `keys` are its issuer's."""

    def __init__(self, settings: Settings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys

    def access(self, token: str) -> Access:
        """Return the rights that the settings grant to the token.

        An UnauthorizedError with the reason if it is not valid.
        """
        try:
            claims = self._claims(token)
            who = _subject(claims)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise UnauthorizedError(f"the token is refused: {_shown(error)}") from None
        values = set(values_of(claims, self._settings.oidc_claim))
        granted = [grant for grant in self._settings.oidc_grants if grant.value in values]
        scopes: Callable[[Iterable[Any]], frozenset[Scope]] = frozenset
        return Access.of_parts(
            who, [Access(who, scopes(grant.scopes), grant.patterns) for grant in granted]
        )

    def fault(self) -> str | None:
        """Return why no token can be verified, if that is so."""
        return self._keys.fault()

    def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > LONGEST:
            raise jwt.InvalidTokenError(f"it is longer than {LONGEST} characters")
        header = jwt.get_unverified_header(token)
        algorithm, id_ = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._settings.oidc_algorithms:
            raise jwt.InvalidTokenError(
                "its signature algorithm (alg) is not in STRANDLINE_OIDC_ALGORITHMS"
            )
        if not isinstance(id_, str):
            raise jwt.InvalidTokenError("it names no key (kid)")
        return jwt.decode(
            token,
            _key(self._keys.key(id_), algorithm),
            algorithms=[algorithm],
            audience=self._settings.oidc_audience,
            issuer=self._settings.oidc_issuer,
            leeway=self._settings.oidc_skew_seconds,
            options={"require": list(REQUIRED), "enforce_minimum_key_length": True},
        )


def _key(jwk: Jwk, algorithm: str) -> jwt.PyJWK:
    """Return the issuer's key for this algorithm; raise an error if it is for another one."""
    if jwk.get("alg", algorithm) != algorithm:
        raise jwt.InvalidTokenError("its signature (alg) is not the one that the key is for")
    return jwt.PyJWK(dict(jwk), algorithm=algorithm)


def _subject(claims: Mapping[str, Any]) -> str:
    """Return how the audit log names whom the token is about."""
    subject = claims["sub"]
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= LONGEST_SUBJECT
        or not subject.isprintable()
    ):
        raise jwt.InvalidTokenError(
            f"its subject (sub) is not one line of at most {LONGEST_SUBJECT} characters"
        )
    return f"subject {subject}"


def values_of(claims: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the values of a claim: those of a list, or a text and the words in it, as of `scope`.

    `a.b` is b within a, unless a claim is called so.

    >>> list(values_of({"realm_access": {"roles": ["etl"]}}, "realm_access.roles"))
    ['etl']
    >>> list(values_of({"scope": "a b"}, "scope"))
    ['a b', 'a', 'b']
    """
    claim: Any = claims.get(name)
    if name not in claims:
        claim = claims
        for part in name.split("."):
            claim = claim.get(part) if isinstance(claim, dict) else None
    if isinstance(claim, str):
        yield claim
        yield from (word for word in claim.split() if word != claim)
    elif isinstance(claim, list):
        yield from (value for value in claim if isinstance(value, str))


def _shown(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "".join(sign if sign.isprintable() else " " for sign in text[:MOST_SHOWN])


def tokens_of(settings: Settings, complain: Callable[[str], None]) -> Tokens:
    """Return a verifier of tokens of the settings' issuer.

    `complain` hears why its keys cannot be read.
    """
    return Tokens(settings, KeySet(reader_of(settings), complain))
