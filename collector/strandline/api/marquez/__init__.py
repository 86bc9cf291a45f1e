"""The API of Marquez 0.51 over this store, one file a subject.

Its page and the reading methods of its clients work unchanged.

Names, shapes and defaults are Marquez'. It differs where Marquez is wrong. States do not depend on
the order of events, a START hides no lineage, a repeated event changes nothing, and a body that is
not JSON is 400.
"""

from strandline.api.marquez import (
    column_lineage,
    dataset_versions,
    datasets,
    events,
    jobs,
    lineage,
    namespaces,
    run_lineage,
    runs,
    search,
    sources,
    stats,
    tags,
)

ROUTERS = (
    *(module.router for module in (namespaces, sources, datasets, dataset_versions, jobs, runs)),
    *(
        module.router
        for module in (lineage, column_lineage, run_lineage, events, stats, search, tags)
    ),
    search.beta_router,
)
