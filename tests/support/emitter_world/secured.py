"""A certificate of its own, and a real Kafka broker that asks for TLS and a password."""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy import jars, kafka

LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "bank", "tr@nsfer; s"


@dataclass(frozen=True)
class Certificate:
    """For 127.0.0.1, signed by itself: whoever trusts it names the file."""

    file: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    """A new one; skips the test where there is no openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here, which makes the certificate")
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(made.key), "-out", str(made.file)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return made


@contextmanager
def broker(folder: Path, tls: Certificate) -> Iterator[kafka.Broker]:
    """A broker with its secured port; its user and password are USER and PASSWORD."""
    class_path = jars.class_path(jars.fetch("kafka"))
    plain, secured = kafka.free_port(), kafka.free_port()
    (folder / "keystore.pem").write_text(tls.key.read_text() + tls.file.read_text())
    properties = {
        **kafka.properties_of(folder, plain, kafka.free_port()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "keystore.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secured}",
    }
    properties["listeners"] = f"{properties['listeners']},SASL_SSL://127.0.0.1:{secured}"
    (folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    _format(folder, class_path)
    started = kafka.launch(folder, class_path, secured, kafka.QUICK)
    try:
        yield started
    finally:
        started.stop()


def _format(folder: Path, class_path: str) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    command = [jars.java(), *kafka.QUICK, "-cp", class_path, "kafka.tools.StorageTool", "format", "-t", cluster]
    command += ["-c", str(folder / "server.properties"), "--add-scram"]
    command += [f'SCRAM-SHA-512=[name="{USER}",password="{PASSWORD}"]']
    subprocess.run(command, check=True, capture_output=True, timeout=kafka.READY_SECONDS)
