"""Starts a render process while the caller still imports.

In: nothing. Out: a ProcessPool. Never: waits for it.
"""

from __future__ import annotations

from argosy.isolation.trusted_process_pool import ProcessPool


def build_render_pool() -> ProcessPool:
    """Create the pool; start it before slow imports and pass it to `open_reader`."""
    return ProcessPool(workers=1, modules=["argosy.gitops.reconciler.render_cache"])
