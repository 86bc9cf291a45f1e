"""Values of the emitter with everything that does not matter filled in."""

from __future__ import annotations

from typing import Any

from strandline_spark.conf import Conf, conf_of
from strandline_spark.delivery.losses import Losses
from strandline_spark.delivery.transport import Message
from strandline_spark.model.statement import (
    Catalog,
    Column,
    Dataset,
    Field,
    Origin,
    Output,
    Snapshot,
    Statement,
    Symlink,
)
from strandline_spark.openlineage.events import Events, RunOf
from strandline_spark.runs.announcer import Announcer

APPLICATION = RunOf("11111111-1111-4111-8111-111111111111", "bank", "APPLICATION")


def conf(**entries: str) -> Conf:
    """The conf of an application named bank; `lease_seconds="9"` stands for spark.strandline.lease.seconds."""
    ours = {f"spark.strandline.{key.replace('_', '.')}": value for key, value in entries.items()}
    return conf_of({"spark.app.name": "bank", **ours}, {})


def table(name: str, *snapshots: Snapshot) -> Dataset:
    """An Iceberg table lake.<name> with two columns."""
    path = f"/warehouse/{name.replace('.', '/')}"
    return Dataset(
        "file",
        path,
        "iceberg",
        schema=(Field("id", "bigint"), Field("who", "struct<name:string>", (Field("name", "string"),))),
        catalog=Catalog("lake", "jdbc", "iceberg", warehouse_uri="file:///warehouse"),
        table=f"lake.{name}",
        symlinks=(Symlink("file:/warehouse", name, "TABLE"),),
        snapshots=snapshots,
    )


def snapshot(snapshot_id: str, **known: Any) -> Snapshot:
    """A snapshot of an Iceberg table."""
    return Snapshot("iceberg", snapshot_id, **known)


def insert(target: Dataset, *sources: Dataset, kind: str = "AppendData") -> Statement:
    """INSERT INTO target SELECT id FROM each source."""
    origins = tuple(Origin((d.namespace, d.name), "id", "DIRECT", "IDENTITY") for d in sources)
    columns = (Column("id", origins),) if origins else ()
    return Statement(kind, inputs=sources, outputs=(Output(target, "append", {"rowCount": 3}),), columns=columns)


def message(name: str, *, vital: bool = False, size: int = 0) -> Message:
    """An event that says its name."""
    return Message(f"run:default/{name}", b'{"name":"%s","pad":"%s"}' % (name.encode(), b"x" * size), vital)


class Sent:
    """Takes events as the outbox does, and shows them."""

    def __init__(self) -> None:
        self.losses = Losses()
        self.messages: list[Message] = []

    def put(self, message: Message) -> None:
        """Takes one."""
        self.messages.append(message)

    @property
    def events(self) -> list[dict[str, Any]]:
        """All of them as dictionaries."""
        import json

        return [json.loads(message.body) for message in self.messages]

    def lines(self) -> list[str]:
        """Each as "STATE job inputs -> outputs barrier"."""
        return [line_of(event) for event in self.events]


def line_of(event: dict[str, Any]) -> str:
    """One event in a line: state, job, tables read and written with their snapshots, and the barrier."""
    reads = ",".join(_shown(dataset, "inputFacets") for dataset in event["inputs"])
    writes = ",".join(_shown(dataset, "outputFacets") for dataset in event["outputs"])
    barrier = event["run"]["facets"].get("strandline_barrier")
    told = f" b{barrier['barrierId']}" if barrier and "barrierId" in barrier else ""
    return f"{event['eventType']} {event['job']['name']} [{reads}] -> [{writes}]{told}"


def _shown(dataset: dict[str, Any], kind: str) -> str:
    found = dataset.get(kind, {}).get("strandline_snapshot")
    name = dataset["name"].rstrip("/").rsplit("/", 1)[-1]
    return f"{name}@{found['snapshotId']}" if found else str(name)


def announcer(sent: Sent, settings: Conf | None = None) -> Announcer:
    """An announcer that writes into `sent`."""
    settings = settings or conf()
    return Announcer(settings, Events(settings, APPLICATION), sent)
