"""Storage check of a running sandbox.

In: its folder. Out: the storage error of /readyz, empty if it is ready. Never: raises; needs a credential.
"""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit

from argosy.cli.sandbox_data_folder_and_lock import DataFolder

TIMEOUT_SECONDS = 3.0
STORE_FAILED_PREFIX = "[-]store failed: "


def find_storage_problem(folder: DataFolder, api: str) -> str:
    address = urlsplit(api)
    try:
        context = ssl.create_default_context(cafile=str(folder.tls / "ca.crt"))
        connection = http.client.HTTPSConnection(address.netloc, timeout=TIMEOUT_SECONDS, context=context)
        try:
            connection.request("GET", "/readyz")
            text = connection.getresponse().read(64 * 1024).decode(errors="replace")
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):  # the sandbox is stopping, or too busy
        return ""
    return next(
        (line.removeprefix(STORE_FAILED_PREFIX) for line in text.splitlines() if line.startswith(STORE_FAILED_PREFIX)),
        "",
    )
