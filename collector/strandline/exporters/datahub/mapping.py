"""The mapping file: rules for urns as an installation's DataHub has them."""

import tomllib
from dataclasses import fields
from pathlib import Path

from strandline.errors import SettingsError
from strandline.exporters.datahub.urns import MappingRule

MEMBERS = {member.name for member in fields(MappingRule)}


def read_mapping(file: str | None) -> tuple[MappingRule, ...]:
    """Return the rules of a mapping file; without a file there are none."""
    if file is None:
        return ()
    try:
        rules = tomllib.loads(Path(file).read_text()).get("dataset", [])
        return tuple(_rule(rule) for rule in rules)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError([f"invalid mapping file {file}: {error}"]) from error


def _rule(members: dict[str, object]) -> MappingRule:
    unknown = sorted(members.keys() - MEMBERS)
    if unknown:
        raise ValueError(f"unknown member {unknown[0]}; known are {', '.join(sorted(MEMBERS))}")
    values = {name: value for name, value in members.items() if isinstance(value, str)}
    if len(values) < len(members):
        raise ValueError("each member of a rule is a text")
    return MappingRule(**values)
