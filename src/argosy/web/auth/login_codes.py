"""One-time login codes for users who can read a folder on this machine.

In: a private folder. Out: a code, or the account that it belongs to. Never: accepts a code twice or after a minute;
puts a secret into process arguments.
"""

from __future__ import annotations

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
from argosy.kube.client.private_file_permission_check import check_private_file, check_private_folder
from argosy.kube.objects.base64url import encode_base64url
from argosy.web.auth.accounts import ADMIN

log = logging.getLogger(__name__)

CODE_LIFETIME_SECONDS: Final = 60
KEY_FILE_NAME: Final = "entry.key"
USED_CODES_FOLDER: Final = "entered"
CLEANUP_THRESHOLD: Final = 1_000  # used codes that have expired are deleted only from this number on
_KEY_BYTES: Final = 32
_CODE_PATTERN: Final = re.compile(
    r"([0-9a-f]{32})\.(\d{10,12})\.([a-z0-9][-a-z0-9_]{0,62})\.([A-Za-z0-9_-]{43})", re.ASCII
)


class LoginCodes:
    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now

    def create_code(self, name: str = ADMIN) -> str:
        check_private_folder(self._folder)  # also without a key: the code would be refused later
        check_private_file(self._folder / KEY_FILE_NAME)
        text = f"{secrets.token_hex(16)}.{int(self._now()) + CODE_LIFETIME_SECONDS}.{name}"
        return f"{text}.{self._sign(text)}"

    def redeem(self, code: str) -> str | None:
        """Return the account of a code; None if the code is invalid or was used."""
        match = _CODE_PATTERN.fullmatch(code)
        if not match or not self._is_key_private():
            return None
        nonce, expires, name, signature = match.groups()
        if not hmac.compare_digest(signature, self._sign(f"{nonce}.{expires}.{name}")):
            return None
        remaining = int(expires) - self._now()
        if not 0 < remaining <= CODE_LIFETIME_SECONDS or not self._mark_used(nonce, expires):
            return None
        return name

    def _mark_used(self, nonce: str, expires: str) -> bool:
        """Record the use of a code as a file, which all processes that share the folder see, also after a restart."""
        folder = self._folder / USED_CODES_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        used_codes = list(folder.iterdir())
        # A clock that is briefly ahead must not free a code.
        for used_code in used_codes if len(used_codes) >= CLEANUP_THRESHOLD else ():
            expired_at = used_code.name.partition(".")[2]
            if expired_at.isdigit() and int(expired_at) < self._now() - CODE_LIFETIME_SECONDS:
                used_code.unlink(missing_ok=True)
        try:
            os.close(os.open(folder / f"{nonce}.{expires}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def _is_key_private(self) -> bool:
        """Check the key's permissions. The path is logged, and shown to users who create codes, but not to visitors."""
        try:
            check_private_folder(self._folder)
            check_private_file(self._folder / KEY_FILE_NAME)
        except UserError as error:
            log.warning("login code refused: %s", error)
            return False
        return True

    def _sign(self, text: str) -> str:
        return encode_base64url(hmac.new(self._load_or_create_key(), b"entry\0" + text.encode(), sha256).digest())

    def _load_or_create_key(self) -> bytes:
        path = self._folder / KEY_FILE_NAME
        for _ in range(3):
            with contextlib.suppress(FileNotFoundError, binascii.Error):
                key = binascii.unhexlify(path.read_bytes().strip())
                if len(key) == _KEY_BYTES:
                    return key
            self._write_key(path)
        raise UserError("does not contain a valid key; delete the file", where=str(path))

    def _write_key(self, path: Path) -> None:
        """Write the key atomically: another process must not read half of it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".{KEY_FILE_NAME}.{secrets.token_hex(8)}"
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
