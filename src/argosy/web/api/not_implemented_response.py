"""Response for parts of Argo CD's API that this server does not implement.

In: the feature and an alternative. Out: a response in Argo CD's format. Never: looks like a server error.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.web.responses import JsonResponse

UNIMPLEMENTED: Final = 12  # argo: gRPC code


def build_not_implemented(feature: str, alternative: str) -> JsonResponse:
    message = f"{feature}; {alternative}"
    document: dict[str, Any] = {"error": message, "code": UNIMPLEMENTED, "message": message}
    # argo: 501 there. Not 5xx here: clients retry those, and this does not change.
    return JsonResponse(document, code=400)
