"""`strandline check` probes each alert webhook without sending an alert or showing its address."""

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from strandline.cli import main
from worlds.identity import new_key

SECRET = "hunter2hunter2"


@contextmanager
def webhook(status: int, context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Its host and port, and the methods that it was asked with."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # who speaks TLS was refused by the other side
                self.close_connection = True

        def do_HEAD(self) -> None:
            asked.append(self.command)
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def signed_by_itself(folder: Path) -> ssl.SSLContext:
    """What a server with a certificate of its own making speaks TLS with."""
    key, name = new_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(began).not_valid_after(began + datetime.timedelta(days=9))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "server.pem").write_bytes(private + made.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


def test_check_lists_unreachable_webhooks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": f"sqlite:///{tmp_path}/strandline.db"}
    main(["migrate"], environ)
    capsys.readouterr()
    with (
        socket.socket() as nobody,
        webhook(405) as (good, asked),
        webhook(307) as (moved, _),
        webhook(200, signed_by_itself(tmp_path)) as (own, _),
    ):
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        away = f"127.0.0.1:{nobody.getsockname()[1]}"
        targets = [
            f"http://{good}/{SECRET}",
            f"slack=http://{moved}/{SECRET}",
            f"https://{own}/{SECRET}",
            f"http://{away}",
        ]
        alone = main(["check", "--alert-targets", targets[0]], environ), capsys.readouterr()
        code = main(["check", "--alert-targets", ",".join(targets)], environ)
    said = capsys.readouterr()

    assert (alone[0], alone[1].err) == (0, "")
    assert "alerts: ok" in alone[1].out
    assert asked == ["HEAD", "HEAD"]
    assert code == 1
    assert SECRET not in said.out + said.err
    begin = "strandline: STRANDLINE_ALERT_TARGETS: "
    redirect, tls, refused = said.err.splitlines()
    assert (
        redirect
        == f"{begin}http://{moved} answers 307, and no redirect is followed: name the address itself"
    )
    assert tls.startswith(f"{begin}https://{own}: SSLCertVerificationError: ")
    assert refused.startswith(f"{begin}http://{away}: ConnectionRefusedError: ")


@pytest.mark.parametrize(
    "target", [f"ftp://a/{SECRET}", f"slack={SECRET}", f"https:///{SECRET}", f"http://a:{SECRET}/x"]
)
def test_check_rejects_an_invalid_webhook_address(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["check", "--alert-targets", f"https://fine.example,{target}"], {})

    said = capsys.readouterr()
    assert code == 1
    assert said.err.startswith("strandline: STRANDLINE_ALERT_TARGETS ")
    assert SECRET not in said.out + said.err
