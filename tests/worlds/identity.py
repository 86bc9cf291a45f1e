"""An identity provider on loopback.

A key pair for each id, the document of its public keys, and tokens that it signs.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://id.example.com/realms/lake"
AUDIENCE = "strandline"


class Provider:
    """Its keys by their ids, what its address answers, and how often it was asked."""

    def __init__(self) -> None:
        self.keys = {"first": new_key()}
        self.asked = 0
        self.status, self.headers = 200, dict[str, str]()

    @property
    def document(self) -> bytes:
        """The public keys."""
        public = [{**_public(key), "kid": id_, "use": "sig"} for id_, key in self.keys.items()]
        return json.dumps({"keys": public}).encode()

    def token(
        self, *, key: str = "first", kid: str | None = None, alg: str = "RS256", **claims: Any
    ) -> str:
        """A token that is right but for what is given; a claim that is None is left out."""
        now = round(datetime.now(UTC).timestamp())
        whole = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 3600,
            "groups": ["etl"],
            **claims,
        }
        content = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(content, self.keys[key], algorithm=alg, headers={"kid": kid or key})


def new_key() -> rsa.RSAPrivateKey:
    """A new key pair."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _public(key: rsa.RSAPrivateKey) -> Mapping[str, Any]:
    found: Mapping[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return found


@contextmanager
def publishing(provider: Provider) -> Iterator[str]:
    """The address at which a provider publishes its keys."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked += 1
            self.send_response(provider.status)
            for name, value in provider.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(provider.document)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
