"""A process that renders, on its way while its caller still imports what compares.

In: nothing. Out: a Crew. Never: waits for it.
"""

from __future__ import annotations

from argosy.isolation.process_pool import Crew


def renderer() -> Crew:
    """Begin it before the imports that take long, and hand it to `open_reader`."""
    return Crew(workers=1, modules=["argosy.gitops.reconciler.render_cache"])
