"""The targets that the settings name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from strandline.errors import SettingsError
from strandline.exporters.datahub.mapping import read_mapping
from strandline.exporters.datahub.target import DataHub, RestEmitter, Rules
from strandline.exporters.datahub.urns import Urns
from strandline.exporters.http_client import Client
from strandline.exporters.openlineage import (
    OPENMETADATA,
    OpenLineageTarget,
    ReceivedEvents,
    marquez_dialect,
)
from strandline.exporters.senders import (
    LINEAGE,
    FileSender,
    HttpBatchSender,
    HttpSender,
    KafkaSender,
    Sender,
    kafka_address,
)
from strandline.exporters.target import ExportTarget, Namespaces
from strandline.settings import PREFIX, Settings, missing_setting

PRODUCER_SECURITY = ("security_protocol", "sasl_", "ssl_")


def targets_of(settings: Settings) -> list[ExportTarget]:
    """Return the targets whose address is set."""
    return [make(settings) for name, make in MAKERS.items() if getattr(settings, f"{name}_url")]


def target_called(name: str, settings: Settings) -> ExportTarget:
    """Return the target of this name; raise SettingsError if its address is not set."""
    if getattr(settings, f"{name}_url") is None:
        raise missing_setting(f"{name}_url", "there is no address to export to")
    return MAKERS[name](settings)


def client_of(name: str, settings: Settings, *, most_bytes: int | None = None) -> Client:
    """Return a client of a target's address with its token."""
    address = getattr(settings, f"{name}_url")
    more = {} if most_bytes is None else {"most_bytes": most_bytes}
    return Client(address, token_of(name, settings), networks=settings.export_networks, **more)


def token_of(name: str, settings: Settings) -> str | None:
    """Return a target's token, from its setting or its file."""
    file = getattr(settings, f"{name}_token_file")
    token: str | None = getattr(settings, f"{name}_token")
    if token is not None or file is None:
        return token
    try:
        return Path(file).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            [f"{PREFIX}{name.upper()}_TOKEN_FILE={file} cannot be read: {error}"]
        ) from error


def sender_of(name: str, settings: Settings) -> Sender:
    """Return the sender of a target's events, by the scheme of its address."""
    address = getattr(settings, f"{name}_url")
    scheme = address.partition("://")[0]
    if scheme == "kafka":
        security = {
            key: value
            for key, value in settings.kafka_security.items()
            if key.startswith(PRODUCER_SECURITY)
        }
        return KafkaSender(*kafka_address(address), security)
    if scheme == "file":
        return FileSender(Path(unquote(urlsplit(address).path)))
    # An address with a path is taken as it is.
    path = "" if urlsplit(address).path.strip("/") else LINEAGE
    return HttpSender(client_of(name, settings), path)


def _marquez(settings: Settings) -> ExportTarget:
    sender = HttpSender(client_of("marquez", settings), LINEAGE)
    dialect = marquez_dialect(settings.marquez_on_end)
    return OpenLineageTarget("marquez", sender, Namespaces(settings.marquez_namespaces), dialect)


def rules_of(settings: Settings) -> Rules:
    """Return the content and names for DataHub."""
    mapping = read_mapping(settings.datahub_mapping_file)
    return Rules(
        Urns(settings.datahub_env, settings.datahub_platform_instance, mapping),
        Namespaces(settings.datahub_namespaces),
        settings.datahub_on_end,
        settings.datahub_orchestrator,
        settings.datahub_schemas,
    )


def _datahub(settings: Settings) -> ExportTarget:
    return DataHub(RestEmitter(client_of("datahub", settings)), rules_of(settings))


def _openmetadata(settings: Settings) -> ExportTarget:
    if (settings.openmetadata_url or "").startswith("http"):
        sender: Sender = HttpBatchSender(client_of("openmetadata", settings))
    else:
        sender = sender_of("openmetadata", settings)
    namespaces = Namespaces(settings.openmetadata_namespaces)
    return OpenLineageTarget("openmetadata", sender, namespaces, OPENMETADATA)


def _openlineage(settings: Settings) -> ExportTarget:
    sender = sender_of("openlineage", settings)
    namespaces = Namespaces(settings.openlineage_namespaces)
    if settings.openlineage_events == "received":
        return ReceivedEvents(sender, namespaces)
    return OpenLineageTarget("openlineage", sender, namespaces)


MAKERS: Mapping[str, Callable[[Settings], ExportTarget]] = {
    "marquez": _marquez,
    "datahub": _datahub,
    "openmetadata": _openmetadata,
    "openlineage": _openlineage,
}
