"""Rules without a database: events into changes and rows, barriers into versions."""
