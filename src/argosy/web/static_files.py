"""Static files, served under URLs that contain a digest of the content.

In: a file name. Out: its URL for templates, and the file. Never: accepts a path; only names in the folder exist.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from argosy.web.request import Asked, Refused
from argosy.web.responses import Answer, Bytes
from argosy.web.route import Public, Route

FOLDER: Final = Path(__file__).parent / "static"
MEDIA: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


class File(NamedTuple):
    data: bytes
    digest: str
    media: str


@cache
def files() -> dict[str, File]:
    """Load all static files once."""
    found = {}
    for path in sorted(FOLDER.glob("*")) if FOLDER.is_dir() else ():
        if path.suffix in MEDIA:
            data = path.read_bytes()
            found[path.name] = File(data, hashlib.sha256(data).hexdigest()[:16], MEDIA[path.suffix])
    return found


def address(name: str) -> str:
    """Return the URL for templates; it changes only with the content."""
    file = files().get(name)
    return f"/static/{file.digest}/{name}" if file else f"/static/-/{name}"


async def serve(asked: Asked) -> Answer:
    file = files().get(asked.values["name"])
    if file is None:
        raise Refused
    return Bytes(file.data, file.media, is_fixed=file.digest == asked.values["digest"])


ROUTES = (Route("GET", "/static/{digest}/{name}", Public("the login page needs them"), serve, "Static file."),)
