"""The script that Alembic runs.

It migrates on the connection that `store/sql/engine.migrate` opened, in its one transaction.
"""

from alembic import context

from strandline.store.schema.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
