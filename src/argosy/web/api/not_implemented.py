"""What Argo CD's API has and this server has not, said clearly.

In: what it is, and what to do instead. Out: an answer in Argo CD's shape. Never: looks like a fault.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.web.responses import Json

UNIMPLEMENTED: Final = 12  # argo: the code of gRPC


def not_built(what: str, instead: str) -> Json:
    told = f"{what}; {instead}"
    document: dict[str, Any] = {"error": told, "code": UNIMPLEMENTED, "message": told}
    # argo: 501 there. No 5xx here: programs try those again, and this stays as it is.
    return Json(document, code=400)
