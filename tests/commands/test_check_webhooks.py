"""`strandline check` sends a trial message to each alert webhook and does not show its address."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fixtures.contract_servers.server import Asked, ContractServer, Fault
from fixtures.emitter.secured import Certificate
from strandline.cli import main

SECRET = "hunter2hunter2"


@contextmanager
def webhook(fault: Fault, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[Asked]]]:
    """Listen, and give host and port with the requests that came."""
    server = ContractServer(tls)
    server.fault = lambda _: fault
    try:
        yield f"127.0.0.1:{server.port}", server.asked
    finally:
        server.close()


def test_check_lists_unreachable_webhooks(
    sqlite_url: str, tls: Certificate, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": sqlite_url}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.file, tls.key)
    with (
        socket.socket() as nobody,
        webhook(Fault(200)) as (good, asked),
        webhook(Fault(307, {"Location": "http://127.0.0.1:1/elsewhere"})) as (moved, _),
        webhook(Fault(200), context) as (own, _),
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
    assert [(one.method, one.body["status"], one.body["text"]) for one in asked] == [
        ("POST", "trial", "this is a trial message of strandline check; nothing is wrong")
    ] * 2
    assert code == 1
    assert SECRET not in said.out + said.err
    begin = "strandline: STRANDLINE_ALERT_TARGETS: "
    redirect, untrusted, refused = said.err.splitlines()
    assert (
        redirect
        == f"{begin}http://{moved} answers 307, and no redirect is followed; use the address it leads to"
    )
    assert untrusted.startswith(f"{begin}https://{own}: SSLCertVerificationError: ")
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
