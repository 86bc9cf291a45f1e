"""What Alembic runs: the migrations on the connection that connect.migrate hands over, in its one transaction."""

from alembic import context

from strandline.store.schema.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
