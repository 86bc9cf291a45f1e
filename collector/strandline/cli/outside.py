"""Checks of `strandline check` outside the database and the brokers.

They test the identity provider's keys and the webhooks.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from types import ModuleType
from typing import Any

from strandline.settings import PREFIX, Settings, faulty_files

SECONDS = 5.0


def token_faults(settings: Settings) -> Iterator[str]:
    """Yield the reasons why no token would be accepted.

    A package that is missing, or keys that cannot be read or fit no signature.
    """
    if settings.oidc_issuer is None:
        return
    if not settings.oidc_jwks_url and not settings.oidc_jwks_file:
        return  # the settings' own fault, and said as one
    if settings.oidc_jwks_file and (faults := faulty_files(settings)):
        yield from faults
        return
    from strandline.api.http.auth import no_library  # nobody waits for them who takes no tokens
    from strandline.api.http.key_sets import keys_in, reader_of
    from strandline.errors import StrandlineError

    name = f"{PREFIX}OIDC_JWKS_{'FILE' if settings.oidc_jwks_file else 'URL'}"
    try:
        import jwt

        keys = keys_in(reader_of(settings)())
    except ImportError as error:
        yield no_library(error)
        return
    except (StrandlineError, OSError) as error:
        yield f"{name}: {error}"
        return
    if not any(
        _fits(jwt, key, algorithm)
        for key, algorithm in product(keys.values(), settings.oidc_algorithms)
    ):
        yield (
            f"{name}: none of its keys is for {', '.join(settings.oidc_algorithms)} "
            f"({PREFIX}OIDC_ALGORITHMS)"
        )


def _fits(jwt: ModuleType, key: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether a signature of this algorithm could be checked with the key."""
    try:
        return key.get("alg", algorithm) == algorithm and bool(
            jwt.PyJWK(dict(key), algorithm=algorithm)
        )
    except jwt.PyJWTError:
        return False


def webhook_faults(settings: Settings) -> Iterator[str]:
    """Yield the targets of alerts that do not take a trial message."""
    if not settings.alert_targets:
        return
    from strandline.alerts.webhooks import SLACK, targets_of, trial_of
    from strandline.errors import StrandlineError
    from strandline.exporters.http_client import Client

    for target in targets_of(settings.alert_targets):
        client = Client(
            target.removeprefix(SLACK), networks=settings.export_networks, seconds=SECONDS
        )
        try:
            status = client.request("POST", "", trial_of(target)).status
        except (StrandlineError, ValueError) as error:
            yield f"{PREFIX}ALERT_TARGETS: {error or client.address}"
            continue
        finally:
            client.close()
        answer = f"{PREFIX}ALERT_TARGETS: {client.address} answers {status}"
        if 300 <= status < 400:
            yield f"{answer}, and no redirect is followed; use the address it leads to"
        elif status >= 400:
            yield f"{answer} to a trial message"
