"""PUT and DELETE /api/v2/catalog-options: what a catalog shows of lineage.

GET /api/v2/tables/catalog_options lists them.
"""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery

from strandline.api.http.route import Route, refused
from strandline.api.http.session import WholeAdminSession
from strandline.questions.versions import CatalogOption, CatalogOptionQuery
from strandline.store.versions.catalog_options import drop_option, set_option

router = APIRouter(prefix="/api/v2", tags=["administration"], route_class=Route)


@router.put("/catalog-options", status_code=204, responses=refused(409))
def put_option(option: CatalogOption, session: WholeAdminSession) -> None:
    """Set an option of a catalog."""
    with session.engine.begin() as connection:
        set_option(connection, option.catalog, option.key, option.value)


@router.delete("/catalog-options", status_code=204, responses=refused(404))
def delete_option(
    query: Annotated[CatalogOptionQuery, InQuery()], session: WholeAdminSession
) -> None:
    """Reset an option."""
    with session.engine.begin() as connection:
        drop_option(connection, query.catalog, query.key)
