"""The schema of 0.1.0, as it was released.

Its SQL stands beside this file, one file for each kind of database.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables and views, and insert the first rows."""
    connection = op.get_bind()
    script = Path(__file__).with_suffix(f".{connection.dialect.name}.sql")
    for statement in script.read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
