"""Response for parts of Argo CD's API that this server does not implement.

In: the feature and an alternative. Out: a response in Argo CD's format. Never: looks like a server error.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.web.responses import Json

UNIMPLEMENTED: Final = 12  # argo: gRPC code


def not_built(what: str, instead: str) -> Json:
    told = f"{what}; {instead}"
    document: dict[str, Any] = {"error": told, "code": UNIMPLEMENTED, "message": told}
    # argo: 501 there. Not 5xx here: clients retry those, and this does not change.
    return Json(document, code=400)
