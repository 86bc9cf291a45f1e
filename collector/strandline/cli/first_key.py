"""The first admin key, from the settings: an empty store needs no manual step."""

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from strandline.errors import SettingsError
from strandline.setting_parsers import api_key
from strandline.settings import PREFIX, Settings
from strandline.store.api_keys import add_first_key, has_admin_key


def add_key_of_settings(engine: Engine, settings: Settings, log: FilteringBoundLogger) -> None:
    """Store the admin key of the settings if no admin key is valid.

    A file that is missing is made, with a new key in it.
    """
    if not settings.admin_key and not settings.admin_key_file:
        return
    now = datetime.now(UTC)
    with engine.begin() as connection:
        if has_admin_key(connection, now):
            return
        key = settings.admin_key or _key_of_file(Path(settings.admin_key_file or ""))
        add_first_key(connection, key, now)
    where = f"{PREFIX}ADMIN_KEY" if settings.admin_key else settings.admin_key_file
    log.info("the first admin key was stored", key_is_in=where)


def _key_of_file(file: Path) -> str:
    try:
        if not file.exists():
            _make_key_file(file)
        return api_key(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError([f"{_shown(file)}: {error.strerror}"]) from error
    except ValueError as error:
        raise SettingsError([f"{_shown(file)}: what the file holds {error}"]) from error


def _make_key_file(file: Path) -> None:
    """Write a new key into a file that nobody else can read."""
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(f"st_{secrets.token_urlsafe(32)}\n")


def _shown(file: Path) -> str:
    return f"{PREFIX}ADMIN_KEY_FILE={file} (--admin-key-file)"
