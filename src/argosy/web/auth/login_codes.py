"""One-time login codes for users who can read a folder on this machine.

In: a private folder. Out: a code, or the account that it belongs to. Never: accepts a code twice or after a minute;
puts a secret into process arguments.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.kube.client.file_permissions import check_private, check_private_folder
from argosy.web.auth.accounts import ADMIN

log = logging.getLogger(__name__)

SECONDS: Final = 60
KEY: Final = "entry.key"
USED: Final = "entered"
MANY: Final = 1_000  # used codes that have expired are deleted only from this number on
_KEY_BYTES: Final = 32
_FORM: Final = re.compile(r"([0-9a-f]{32})\.(\d{10,12})\.([a-z0-9][-a-z0-9_]{0,62})\.([A-Za-z0-9_-]{43})", re.ASCII)


class Codes:
    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now

    def mint(self, name: str = ADMIN) -> str:
        check_private_folder(self._folder)  # also without a key: the code would be refused later
        check_private(self._folder / KEY)
        text = f"{secrets.token_hex(16)}.{int(self._now()) + SECONDS}.{name}"
        return f"{text}.{self._signed(text)}"

    def redeem(self, code: str) -> str | None:
        """Return the account of a code; None if the code is invalid or was used."""
        found = _FORM.fullmatch(code)
        if not found or not self._is_key_private():
            return None
        once, until, name, signature = found.groups()
        if not hmac.compare_digest(signature, self._signed(f"{once}.{until}.{name}")):
            return None
        left = int(until) - self._now()
        if not 0 < left <= SECONDS or not self._is_first(once, until):
            return None
        return name

    def _is_first(self, once: str, until: str) -> bool:
        """Record the use of a code as a file, which all processes that share the folder see, also after a restart."""
        used = self._folder / USED
        used.mkdir(mode=0o700, exist_ok=True)
        known = list(used.iterdir())
        for each in known if len(known) >= MANY else ():  # a clock that is briefly ahead must not free a code
            ended = each.name.partition(".")[2]
            if ended.isdigit() and int(ended) < self._now() - SECONDS:
                each.unlink(missing_ok=True)
        try:
            os.close(os.open(used / f"{once}.{until}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def _is_key_private(self) -> bool:
        """Check the key's permissions. The path is logged, and shown to users who create codes, but not to visitors."""
        try:
            check_private_folder(self._folder)
            check_private(self._folder / KEY)
        except UserError as error:
            log.warning("login code refused: %s", error)
            return False
        return True

    def _signed(self, text: str) -> str:
        made = hmac.new(self._key(), b"entry\0" + text.encode(), sha256).digest()
        return base64.urlsafe_b64encode(made).rstrip(b"=").decode()

    def _key(self) -> bytes:
        path = self._folder / KEY
        for _ in range(3):
            with contextlib.suppress(FileNotFoundError, binascii.Error):
                found = binascii.unhexlify(path.read_bytes().strip())
                if len(found) == _KEY_BYTES:
                    return found
            self._make_key(path)
        raise UserError("does not contain a valid key; delete the file", where=str(path))

    def _make_key(self, path: Path) -> None:
        """Write the key atomically: another process must not read half of it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".{KEY}.{secrets.token_hex(8)}"
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
