"""Counts handled requests by method, route and code.

In: routes and codes. Out: counters for /metrics. Never: a raw path.
"""

from __future__ import annotations

from collections import Counter

from argosy.web.route import Route


class RequestCounter:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()

    def count_request(self, route: Route | None, method: str, code: int) -> None:
        method_label = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        self.requests[(method_label, route.path if route else "", code)] += 1
