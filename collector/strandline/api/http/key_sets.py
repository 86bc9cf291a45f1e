"""The public keys of an identity provider (JWKS), from its address or a file, for ten minutes.

An unknown key makes one thread read them anew, at most every half minute. So tokens signed with
keys that do not exist delay nobody and cause no storm of requests. A new key is asked for again
later, until they have been read since; only then it is refused. Where they cannot be read, those of
before count for a day.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from strandline.errors import KeySetError, OverloadError, StrandlineError, UnauthorizedError
from strandline.exporters.http_client import Client
from strandline.settings import Settings

FRESH_SECONDS = 600
STALE_SECONDS = 86_400
ASK_EVERY = 30
READ_SECONDS = 5.0
MOST_BYTES = 256 << 10
MOST_MISSING = 1_000
KINDS = frozenset(
    {"RSA", "EC", "OKP"}
)  # of key pairs; `oct` is a shared secret, which nobody publishes

Jwk = Mapping[str, Any]


class KeySet:
    """The keys by their ids; `read` gives the document, `complain` hears why there is none."""

    def __init__(
        self,
        read: Callable[[], bytes],
        complain: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._complain = complain
        self._clock = clock
        self._reading = threading.Lock()
        self._keys: dict[str, Jwk] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._reason: str | None = None
        self._missing: set[str] = set()  # ids that a set read since did not have

    def key(self, id_: str) -> Jwk:
        """Return the key with this id.

        Raise an UnauthorizedError if the issuer has none, an OverloadError if nobody can say.
        """
        key, now = self._keys.get(id_), self._clock()
        if key is None or _is_over(self._read_at, FRESH_SECONDS, now):
            self._read_again(now)
            key = self._keys.get(id_)
        if _is_over(self._read_at, STALE_SECONDS, now):
            raise OverloadError(
                "the keys of the identity provider cannot be read; the log says why", ASK_EVERY
            )
        if key is not None:
            return key
        since_read = now - (self._read_at or 0)
        if id_ not in self._missing and since_read > 0:
            wait = max(1, math.ceil(ASK_EVERY - since_read))
            raise OverloadError("the keys of the identity provider are read again soon", wait)
        if len(self._missing) < MOST_MISSING:
            self._missing.add(id_)
        raise UnauthorizedError("the token is signed with a key that its issuer does not have")

    def fault(self) -> str | None:
        """Return why no token can be verified, if that is so; read the keys first if need be."""
        now = self._clock()
        if _is_over(self._read_at, STALE_SECONDS, now):
            self._read_again(now)
        if _is_over(self._read_at, STALE_SECONDS, now):
            return self._reason or "the keys of the identity provider are being read"
        return None

    def _read_again(self, now: float) -> None:
        if not self._reading.acquire(blocking=False):
            return  # somebody does
        try:
            if not _is_over(self._tried_at, ASK_EVERY, now):
                return
            self._tried_at = now
            self._keys, self._read_at = keys_in(self._read()), now
            self._reason = None
        except (StrandlineError, OSError) as error:
            self._reason = f"the keys of the identity provider cannot be read: {error}"
            self._complain(str(error))
        finally:
            self._reading.release()


def keys_in(document: bytes) -> dict[str, Jwk]:
    """Return the keys of a JWKS that verify signatures, by their ids.

    A KeySetError where there is none.
    """
    try:
        listed = orjson.loads(document)["keys"]
        keys_by_id = {key["kid"]: key for key in reversed(listed) if _verifies(key)}
    except (ValueError, KeyError, TypeError):
        raise KeySetError("the document is not a JSON object with `keys`") from None
    if not keys_by_id:
        raise KeySetError("the document has no key with an id (kid) that verifies signatures")
    return keys_by_id


def _verifies(key: Any) -> bool:
    return (
        isinstance(key, dict)
        and isinstance(key.get("kid"), str)
        and key.get("kty") in KINDS
        and key.get("use", "sig") == "sig"
        and "verify" in key.get("key_ops", ("verify",))
    )


def reader_of(settings: Settings) -> Callable[[], bytes]:
    """Return a reader of the document at the settings' address or file."""
    if settings.oidc_jwks_file:
        file = Path(settings.oidc_jwks_file)
        return lambda: _file(file)
    client = Client(settings.oidc_jwks_url or "", seconds=READ_SECONDS, most_bytes=MOST_BYTES)
    return lambda: client.send("GET", "")


def _file(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES)


def _is_over(since: float | None, seconds: float, now: float) -> bool:
    return since is None or now - since >= seconds
