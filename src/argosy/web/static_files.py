"""Static files, served under URLs that contain a digest of the content.

In: a file name. Out: its URL for templates, and the file. Never: accepts a path; only names in the folder exist.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import BytesResponse, WebResponse
from argosy.web.route import Public, Route

STATIC_FOLDER: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


class StaticFile(NamedTuple):
    data: bytes
    digest: str
    media_type: str


@cache
def load_files() -> dict[str, StaticFile]:
    """Load all static files once."""
    files_by_name = {}
    for path in sorted(STATIC_FOLDER.glob("*")) if STATIC_FOLDER.is_dir() else ():
        if path.suffix in MEDIA_TYPES:
            data = path.read_bytes()
            files_by_name[path.name] = StaticFile(data, hashlib.sha256(data).hexdigest()[:16], MEDIA_TYPES[path.suffix])
    return files_by_name


def get_static_url(name: str) -> str:
    """Return the URL for templates; it changes only with the content."""
    file = load_files().get(name)
    return f"/static/{file.digest}/{name}" if file else f"/static/-/{name}"


async def serve_file(request: RequestContext) -> WebResponse:
    file = load_files().get(request.path_parameters["name"])
    if file is None:
        raise NotFoundOrForbidden
    return BytesResponse(file.data, file.media_type, is_immutable=file.digest == request.path_parameters["digest"])


ROUTES = (Route("GET", "/static/{digest}/{name}", Public("the login page needs them"), serve_file, "Static file."),)
