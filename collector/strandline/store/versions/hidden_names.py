"""The names in the model of versions that a key does not see.

They are taken out of the words that the model makes.
"""

from strandline.core.access.granted import Access
from strandline.core.access.hidden import HiddenNames
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model


def names_hidden(model: Model, access: Access) -> HiddenNames:
    """Names of tables, jobs and groups, and what people call the tables."""
    named = {
        *model.names,
        *model.group_of,
        *model.places,
        *model.registered,
        *model.retired,
        *model.called,
    }
    hidden, visible = set[str](), set[str]()
    for name in named:
        words = {name[0], name[1], model.called.get(name, "")}
        (visible if access.allows(name[0]) else hidden).update(words)
    for group in model.groups:
        (visible if sees_group(model, access, group) else hidden).add(group)
    return HiddenNames(hidden, visible)


def sees_group(model: Model, access: Access, group: str) -> bool:
    """Return true if the key sees a namespace of the group's tables or declared base tables."""
    declared: tuple[Table, ...] = model.groups[group].declared if group in model.groups else ()
    tables = (*declared, *(table for table, of in model.group_of.items() if of == group))
    return access.everything or any(access.allows(namespace) for namespace, _ in tables)
