"""Files that ship with the page: each under an address that names its content.

In: a name. Out: an address for templates, and the file. Never: a path: only what is in the folder is known by name.
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
    """All of them, read once."""
    found = {}
    for path in sorted(FOLDER.glob("*")) if FOLDER.is_dir() else ():
        if path.suffix in MEDIA:
            data = path.read_bytes()
            found[path.name] = File(data, hashlib.sha256(data).hexdigest()[:16], MEDIA[path.suffix])
    return found


def address(name: str) -> str:
    """For templates: the same as long as the file is."""
    file = files().get(name)
    return f"/static/{file.digest}/{name}" if file else f"/static/-/{name}"


async def serve(asked: Asked) -> Answer:
    file = files().get(asked.values["name"])
    if file is None:
        raise Refused
    return Bytes(file.data, file.media, is_fixed=file.digest == asked.values["digest"])


ROUTES = (
    Route("GET", "/static/{digest}/{name}", Public("the login page needs them"), serve, "A file of the page."),
)
