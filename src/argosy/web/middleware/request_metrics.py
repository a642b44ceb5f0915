"""Counts handled requests by method, route and code.

In: routes and codes. Out: counters for /metrics. Never: a raw path.
"""

from __future__ import annotations

from collections import Counter

from argosy.web.route import Route


class Tally:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()

    def count(self, route: Route | None, method: str, code: int) -> None:
        known = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        self.requests[(known, route.path if route else "", code)] += 1
