"""Tokens of an identity provider as keys, with every kind of invalid token."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, client_of, problem, serving
from strandline.api.http.key_sets import ASK_EVERY, FRESH_SECONDS, STALE_SECONDS, KeySet, keys_in
from strandline.cli import main
from strandline.core.access.granted import Access
from strandline.errors import KeySetError, OverloadError, SettingsError, UnauthorizedError
from strandline.setting_parsers import TokenGrant
from strandline.settings import Settings, read_settings
from worlds.identity import AUDIENCE, ISSUER, Provider, new_key, publishing
from worlds.sample_events import run_event

ETL = TokenGrant("etl", ("ingest",), ("mine", "s3://mine*"))
READERS = TokenGrant("readers", ("read",), ("*",))
BOSSES = TokenGrant("bosses", ("admin",), ("*",))


def now() -> int:
    """The second that it is: a suite takes longer than a token lasts."""
    return round(datetime.now(UTC).timestamp())


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def address(provider: Provider) -> Iterator[str]:
    with publishing(provider) as address:
        yield address


def settings_of(**more: Any) -> Settings:
    return replace(
        SETTINGS,
        **{
            "oidc_issuer": ISSUER,
            "oidc_audience": (AUDIENCE,),
            "oidc_grants": (ETL, READERS, BOSSES),
            **more,
        },
    )


@pytest.fixture
def client(engine: Engine, address: str) -> Iterator[httpx.Client]:
    with (
        serving(engine, settings_of(oidc_jwks_url=address)) as where,
        client_of(where, "") as client,
    ):
        yield client


def part(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def by_hand(header: Any, claims: Any, sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    """A token that no library would make."""
    text = part(header if isinstance(header, bytes) else json.dumps(header).encode()) + b"."
    text += part(json.dumps(claims).encode())
    return (text + b"." + part(sign(text))).decode()


def with_public_key(provider: Provider) -> str:
    """Signed as with a shared secret, which is the public key that everybody can read."""
    public = (
        provider.keys["first"]
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    claims = jwt.decode(provider.token(groups=["bosses"]), options={"verify_signature": False})
    return by_hand(
        {"alg": "HS256", "kid": "first"},
        claims,
        lambda text: hmac.digest(public, text, hashlib.sha256),
    )


def bad_tokens(provider: Provider) -> dict[str, tuple[str, str]]:
    """Each with the beginning of the reason that its sender reads."""
    right = provider.token()
    claims = jwt.decode(right, options={"verify_signature": False})
    head, body, signature = right.split(".")
    other, stranger = {**claims, "groups": ["bosses"]}, new_key()
    of_stranger = jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "first"})
    own_key = {
        "alg": "RS256",
        "kid": "first",
        "jwk": jwt.algorithms.RSAAlgorithm.to_jwk(stranger.public_key(), as_dict=True),
    }
    curve = ec.generate_private_key(ec.SECP256R1())
    wrong_kind = "its signature algorithm (alg) is not in STRANDLINE_OIDC_ALGORITHMS"
    return {
        "none": (by_hand({"alg": "none", "kid": "first"}, claims), wrong_kind),
        "None": (by_hand({"alg": "None", "kid": "first"}, claims), wrong_kind),
        "no alg": (by_hand({"kid": "first"}, claims), wrong_kind),
        "alg as list": (by_hand({"alg": ["RS256"], "kid": "first"}, claims), wrong_kind),
        "HS256 with the public key": (with_public_key(provider), wrong_kind),
        "another algorithm": (provider.token(alg="RS512"), wrong_kind),
        "ES256": (jwt.encode(claims, curve, algorithm="ES256", headers={"kid": "first"}), wrong_kind),
        "no kid": (jwt.encode(claims, provider.keys["first"], algorithm="RS256"), "it names no key (kid)"),
        "kid as number": (by_hand({"alg": "RS256", "kid": 7}, claims), ""),
        "another's key": (of_stranger, "Signature verification failed"),
        "a key that it brings": (
            by_hand(own_key, claims, lambda text: _rsa(stranger, text)),
            "Signature verification failed",
        ),
        "other claims": (f"{head}.{part(json.dumps(other).encode()).decode()}.{signature}", "Signature verification"),
        "no signature": (f"{head}.{body}.", "Signature verification failed"),
        "critical": (
            by_hand({"alg": "RS256", "kid": "first", "crit": ["x"], "x": 1}, claims, lambda t: _rsa(provider.keys["first"], t)),
            "",
        ),
        "issuer": (provider.token(iss=f"{ISSUER}/"), "Invalid issuer"),
        "no issuer": (provider.token(iss=None), 'Token is missing the "iss" claim'),
        "audience": (provider.token(aud="another"), "Audience doesn't match"),
        "no audience": (provider.token(aud=None), 'Token is missing the "aud" claim'),
        "expired": (provider.token(exp=now() - 31), "Signature has expired"),
        "no end": (provider.token(exp=None), 'Token is missing the "exp" claim'),
        "end is text": (provider.token(exp="soon"), "Expiration Time claim (exp) must be an integer"),
        "not yet": (provider.token(nbf=now() + 3600), "The token is not yet valid (nbf)"),
        "from the future": (provider.token(iat=now() + 3600), "The token is not yet valid (iat)"),
        "no subject": (provider.token(sub=None), 'Token is missing the "sub" claim'),
        "subject of lines": (provider.token(sub="ada\nkey boss"), "its subject (sub) is not one line"),
        "deep header": (by_hand(b"[" * 9000, claims), ""),
        "no JSON": ("eyJ.eyJ.x", ""),
        "long": (provider.token(more="x" * 20_000), "it is longer than"),
    }  # fmt: skip


def _rsa(key: Any, text: bytes) -> bytes:
    return jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(text, key)


def test_every_bad_token_is_rejected_with_its_reason(
    client: httpx.Client, provider: Provider
) -> None:
    good = bearer(provider.token(groups=["readers"]))
    found = dict[str, tuple[int, str, str]]()
    for name, (token, _) in bad_tokens(provider).items():
        found[name] = problem(client.get("/api/v2/jobs", headers=bearer(token)))
        assert client.get("/api/v2/jobs", headers=good).status_code == 200, (
            name
        )  # ends the delays, and shows that it is open

    assert {name: status for name, (status, _, _) in found.items() if status != 401} == {}
    reasons = {name: reason for name, (_, reason) in bad_tokens(provider).items()}
    assert {
        name: told
        for name, (_, _, told) in found.items()
        if f"the token is refused: {reasons[name]}" not in told
    } == {}


def test_token_has_the_scopes_of_its_groups(client: httpx.Client, provider: Provider) -> None:
    """Each scope applies to the namespaces of its own grant only."""
    both = bearer(provider.token(groups=["etl", "readers", "others"]))
    theirs, own = run_event(), run_event(outputs=[])
    own["job"]["namespace"] = "mine"

    asked = [
        client.post("/api/v1/lineage", json=own, headers=both).status_code,
        client.post("/api/v1/lineage", json=theirs, headers=both).status_code,
        client.get("/api/v2/jobs", headers=both).status_code,
        client.get("/metrics", headers=both).status_code,
        client.put("/api/v2/catalog-options", json={}, headers=both).status_code,
        client.get("/api/v2/jobs", headers=bearer(provider.token())).status_code,
        client.get("/api/v2/jobs", headers=bearer(provider.token(groups=["others"]))).status_code,
        client.get("/api/v2/jobs", headers=bearer(provider.token(groups=None))).status_code,
        client.get("/metrics", headers=bearer(provider.token(groups=["bosses"]))).status_code,
    ]

    assert asked == [201, 403, 200, 200, 403, 403, 403, 403, 200]
    assert client.get("/api/v2/jobs").status_code == 401


def test_clock_skew_and_several_audiences_are_accepted(
    engine: Engine, address: str, provider: Provider
) -> None:
    settings = settings_of(oidc_jwks_url=address, oidc_skew_seconds=300, oidc_audience=("a", "b"))
    with serving(engine, settings) as where, client_of(where, "") as client:
        asked = [
            client.get(
                "/api/v2/jobs", headers=bearer(provider.token(groups=["readers"], **claims))
            ).status_code
            for claims in (
                {"aud": "b", "exp": now() - 60},
                {"aud": ["x", "a"]},
                {"aud": "a", "exp": now() - 301},
                {"aud": "ab"},
            )
        ]

    assert asked == [200, 200, 401, 401]


def test_the_audit_log_names_the_subject(client: httpx.Client, provider: Provider) -> None:
    boss = bearer(provider.token(sub="ada@lake", groups=["bosses"]))
    option = {"catalog": "lake", "key": "x", "value": "y"}

    assert client.put("/api/v2/catalog-options", json=option, headers=boss).status_code == 204
    assert (
        client.put(
            "/api/v2/catalog-options", json=option, headers=bearer(provider.token())
        ).status_code
        == 403
    )
    noted = client.get("/api/v2/audit", headers=boss).json()["items"]
    assert [(one["who"], one["status"]) for one in noted] == [
        ("subject ada", 403),
        ("subject ada@lake", 204),
    ]


def test_page_session_accepts_a_token(client: httpx.Client, provider: Provider) -> None:
    page = {"X-Strandline-Page": "1"}
    token = provider.token(groups=["readers"])

    assert (
        client.post("/ui/session", content=provider.token(exp=now() - 60), headers=page).status_code
        == 401
    )
    assert client.post("/ui/session", content=token, headers=page).status_code == 204
    assert client.get("/api/v2/jobs").status_code == 200
    client.cookies.set("strandline_key", provider.token(exp=now() - 60))
    assert client.get("/ui/session", headers={}).json() == {"keyNeeded": True}


def test_public_keys_can_be_read_from_a_file(
    sqlite_engine: Engine, tmp_path: Path, provider: Provider
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(provider.document)
    with serving(sqlite_engine, settings_of(oidc_jwks_file=str(file))) as where:
        asked = [
            httpx.get(f"{where}/api/v2/jobs", headers=bearer(token)).status_code
            for token in (
                provider.token(groups=["readers"]),
                provider.token(groups=["readers"], kid="second"),
            )
        ]

    assert asked == [200, 503]


def test_unreadable_public_keys_ask_the_sender_to_retry(
    sqlite_engine: Engine, provider: Provider
) -> None:
    with serving(sqlite_engine, settings_of(oidc_jwks_url="http://127.0.0.1:1/keys")) as where:
        answer = httpx.get(
            f"{where}/api/v2/jobs", headers=bearer(provider.token(groups=["readers"]))
        )

    assert problem(answer)[:2] == (503, "overload")
    assert answer.headers["retry-after"] == str(ASK_EVERY)


class Source:
    """Keys that can change or be away, and a clock."""

    def __init__(self) -> None:
        self.now, self.asked, self.ids, self.complaints = 0.0, 0, ["first"], list[str]()
        self.set = KeySet(self._read, self.complaints.append, lambda: self.now)

    def _read(self) -> bytes:
        self.asked += 1
        if not self.ids:
            raise OSError("away")
        return json.dumps(
            {"keys": [{"kid": one, "kty": "RSA", "n": "", "e": ""} for one in self.ids]}
        ).encode()

    def finds(self, id_: str, now: float) -> bool | None:
        """Return true if a token with this key's id would have a key; None: not known yet."""
        self.now = now
        try:
            return bool(self.set.key(id_)["kid"] == id_)
        except UnauthorizedError:
            return False
        except OverloadError:
            return None


def test_unknown_key_id_reloads_keys_at_most_twice_a_minute() -> None:
    source = Source()
    found = [source.finds(f"guess {number}", number / 100) for number in range(1000)]
    source.ids.append("second")

    assert (found, source.asked) == ([False, *[None] * 999], 1)
    late = ASK_EVERY - 1
    asked = [source.finds(id_, late) for id_ in ("first", "second", "guess 0")]
    assert (asked, source.asked) == ([True, None, False], 1)
    assert (source.finds("second", ASK_EVERY), source.asked) == (True, 2)


def test_token_of_a_key_made_just_now_may_be_sent_again() -> None:
    source = Source()
    source.finds("first", 0)
    source.now = 10

    with pytest.raises(OverloadError) as refused:
        source.set.key("second")

    assert refused.value.retry_after == ASK_EVERY - 10
    assert source.finds("second", ASK_EVERY) is False


def test_server_is_not_ready_while_no_key_of_its_issuer_can_be_read(
    sqlite_engine: Engine, tmp_path: Path, provider: Provider
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(provider.document)
    unreadable = settings_of(oidc_jwks_url="http://127.0.0.1:1/keys")
    with serving(sqlite_engine, unreadable) as address:
        answer = httpx.get(f"{address}/readyz")
    with serving(sqlite_engine, settings_of(oidc_jwks_file=str(file))) as address:
        ready = httpx.get(f"{address}/readyz")

    assert answer.status_code == 503
    assert answer.json()["faults"]["issuer"].startswith(
        "the keys of the identity provider cannot be read: "
    )
    assert (ready.status_code, ready.json()["faults"]) == (200, {})


def test_withdrawn_public_key_is_rejected_after_ten_minutes() -> None:
    source = Source()
    before = source.finds("first", 0), source.finds("first", FRESH_SECONDS - 1)
    source.ids[:] = ["second"]

    assert (before, source.asked) == ((True, True), 1)
    assert source.finds("first", FRESH_SECONDS) is False


def test_cached_public_keys_are_used_for_a_day_if_none_can_be_read() -> None:
    source = Source()
    source.finds("first", 0)
    source.ids.clear()

    assert source.finds("first", STALE_SECONDS - 1)
    assert source.complaints == ["away"]
    assert source.finds("first", STALE_SECONDS) is None


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": [1]}', b'{"keys": [{"kty": "oct", "kid": "a", "k": "AA"}]}',
     b'{"keys": [{"kty": "RSA", "n": "", "e": ""}]}', b'{"keys": [{"kty": "RSA", "kid": "a", "use": "enc"}]}',
     b'{"keys": [{"kty": "RSA", "kid": "a", "key_ops": ["encrypt"]}]}'],
)  # fmt: skip
def test_document_without_signature_keys_is_rejected(document: bytes) -> None:
    with pytest.raises(KeySetError):
        keys_in(document)


def test_scope_applies_to_the_namespaces_of_its_grant() -> None:
    parts = [Access("a", frozenset({"read"}), ("*",)), Access("a", frozenset({"ingest"}), ("mine",)),
             Access("a", frozenset({"admin"}), ("ours",))]  # fmt: skip
    both = Access.of_parts("a", parts)

    found = {scope: both.for_scope(scope).patterns for scope in ("read", "ingest", "admin")}
    assert found == {"read": ("*", "ours"), "ingest": ("mine", "ours"), "admin": ("ours",)}
    assert not both.for_scope("ingest").may("admin")
    assert both.for_scope("admin").may("ingest")
    assert not Access.of_parts("a", parts[:1]).for_scope("admin").may("admin")


ENVIRON = {
    "STRANDLINE_OIDC_ISSUER": ISSUER,
    "STRANDLINE_OIDC_AUDIENCE": AUDIENCE,
    "STRANDLINE_OIDC_GRANTS": "etl=ingest@mine; bosses=admin@*",
    "STRANDLINE_OIDC_JWKS_URL": "https://id.example.com/keys",
}


def test_tokens_are_required_on_loopback_too() -> None:
    assert read_settings(ENVIRON).auth_required
    assert not read_settings({}).auth_required


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (
            {"OIDC_ALGORITHMS": "RS256,none"},
            "STRANDLINE_OIDC_ALGORITHMS=RS256,none (--oidc-algorithms) is not a list of",
        ),
        ({"OIDC_ALGORITHMS": "HS256"}, "(none and HS256 prove nothing)"),
        (
            {"OIDC_JWKS_URL": "http://id.example.com/keys"},
            "is not https: keys could be replaced on the way",
        ),
        (
            {"OIDC_JWKS_FILE": "keys.json"},
            "needs one of STRANDLINE_OIDC_JWKS_URL (--oidc-jwks-url) and STRANDLINE_OIDC_JWKS_FILE (--oidc-jwks-file)",
        ),
        (
            {"OIDC_AUDIENCE": ""},
            "STRANDLINE_OIDC_AUDIENCE (--oidc-audience) is missing, and STRANDLINE_OIDC_ISSUER (--oidc-issuer) needs it",
        ),
        (
            {"OIDC_GRANTS": ""},
            "STRANDLINE_OIDC_GRANTS (--oidc-grants) is missing, and STRANDLINE_OIDC_ISSUER (--oidc-issuer) needs it",
        ),
        (
            {"OIDC_GRANTS": "etl=write@*"},
            "is not VALUE=SCOPE,...@PATTERN,...; with scopes read, ingest and admin",
        ),
        (
            {"OIDC_ISSUER": ""},
            "STRANDLINE_OIDC_AUDIENCE (--oidc-audience) is set, but STRANDLINE_OIDC_ISSUER (--oidc-issuer) is not",
        ),
        (
            {"OIDC_SKEW_SECONDS": "3600"},
            "STRANDLINE_OIDC_SKEW_SECONDS=3600 (--oidc-skew-seconds) is not a whole number from 0 to 300",
        ),
        (
            {"AUTH": "off"},
            "STRANDLINE_AUTH=off (--auth) takes no tokens, and STRANDLINE_OIDC_ISSUER (--oidc-issuer) is set",
        ),
    ],
)
def test_unsafe_token_settings_are_rejected(more: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(ENVIRON | {f"STRANDLINE_{name}": value for name, value in more.items()})

    assert [one for one in raised.value.faults if fault in one] != []


def test_check_reads_the_public_keys(
    sqlite_url: str, sqlite_engine: Engine, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    provider: Provider,
) -> None:  # fmt: skip
    environ = ENVIRON | {"STRANDLINE_DATABASE_URL": sqlite_url}
    del environ["STRANDLINE_OIDC_JWKS_URL"]
    no_set = tmp_path / "none.json"
    no_set.write_text("{}")
    asked = [
        {"JWKS_URL": address},
        {"JWKS_URL": address, "ALGORITHMS": "ES256"},
        {"JWKS_URL": "http://127.0.0.1:1/"},
        {"JWKS_FILE": str(no_set)},
        {"JWKS_FILE": str(tmp_path / "missing.json")},
    ]

    found = []
    for more in asked:
        code = main(
            ["check"], environ | {f"STRANDLINE_OIDC_{name}": value for name, value in more.items()}
        )
        found.append((code, capsys.readouterr()))
    provider.status, provider.headers = 302, {"Location": address}
    redirected = (
        main(["check"], environ | {"STRANDLINE_OIDC_JWKS_URL": address}),
        capsys.readouterr(),
    )
    provider.status, provider.headers = 200, {}

    assert [code for code, _ in found] == [0, 1, 1, 1, 1]
    assert "tokens: ok" in found[0][1].out
    assert found[1][1].err == (
        "strandline: STRANDLINE_OIDC_JWKS_URL: none of its keys is for ES256 (STRANDLINE_OIDC_ALGORITHMS)\n"
    )
    assert "ConnectionRefusedError" in found[2][1].err
    assert (
        found[3][1].err
        == "strandline: STRANDLINE_OIDC_JWKS_FILE: the document is not a JSON object with `keys`\n"
    )
    missing = f"STRANDLINE_OIDC_JWKS_FILE={tmp_path / 'missing.json'} (--oidc-jwks-file)"
    assert f"{missing} does not exist" in found[4][1].err
    assert redirected[0] == 1
    assert "redirects are not followed" in redirected[1].err
