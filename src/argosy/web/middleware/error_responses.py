"""Error responses: JSON in Argo CD's format for programs, a page with the next step for people.

In: ErrorDetails. Out: a response. Never: reads the exception.
"""

from __future__ import annotations

from argosy.web.error_details import ErrorDetails
from argosy.web.responses import JsonResponse, PageResponse, RedirectResponse, WebResponse
from argosy.web.route import is_api_path

PAGE_TITLES = {
    400: "Bad request", 401: "Sign in first", 403: "Forbidden", 404: "Not found",
    405: "Method not allowed", 409: "Conflict", 413: "Request too large", 415: "Unsupported media type",
    421: "Unknown host", 429: "Too many requests", 500: "Internal server error", 503: "Service unavailable",
}  # fmt: skip


def build_method_not_allowed(allowed_methods: tuple[str, ...], path: str) -> WebResponse:
    details = ErrorDetails(405, "method not allowed", headers=(("allow", ", ".join(allowed_methods)),))
    return build_error_response(details, is_api=is_api_path(path), is_reading=False, path=path)


def build_error_response(details: ErrorDetails, *, is_api: bool, is_reading: bool, path: str) -> WebResponse:
    if is_api:
        document = {"error": details.message, "code": details.grpc_code, "message": details.message}
        return JsonResponse(document, code=details.code, headers=details.headers)
    if details.code == 401 and is_reading:
        from urllib.parse import quote

        return RedirectResponse(f"/login?next={quote(path, safe='')}")
    code = 404 if details.is_not_found_or_forbidden else details.code
    message = (
        "Not found, or you do not have permission to see it." if details.is_not_found_or_forbidden else details.message
    )
    values = {"code": code, "title": PAGE_TITLES.get(code, "Error"), "message": message, "next": details.next_step}
    return PageResponse("error.html", values, code=code, headers=details.headers)
