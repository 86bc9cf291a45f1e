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
        *model.domain_of,
        *model.places,
        *model.registered,
        *model.retired,
        *model.called,
    }
    hidden, seen = set[str](), set[str]()
    for one in named:
        words = {one[0], one[1], model.called.get(one, "")}
        (seen if access.allows(one[0]) else hidden).update(words)
    for domain in model.domains:
        (seen if sees_domain(model, access, domain) else hidden).add(domain)
    return HiddenNames(hidden, seen)


def sees_domain(model: Model, access: Access, domain: str) -> bool:
    """Return true if the key sees a namespace of the group's tables or declared base tables."""
    declared: tuple[Table, ...] = model.domains[domain].declared if domain in model.domains else ()
    tables = (*declared, *(table for table, of in model.domain_of.items() if of == domain))
    return access.everything or any(access.allows(namespace) for namespace, _ in tables)
