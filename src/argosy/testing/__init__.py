"""Tests a GitOps repository: a pytest plug-in, and the classes that its fixtures return.

In: a repository, pytest. Out: Repo, Manifests, Sandbox. Never: imports a submodule before a test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy.testing.rendered_manifest_lookup import Manifests
    from argosy.testing.sandbox import Sandbox
    from argosy.testing.user_repository_renders import Repo

__all__ = ["Manifests", "Repo", "Sandbox"]
_HOMES = {"Manifests": "rendered_manifest_lookup", "Repo": "user_repository_renders", "Sandbox": "sandbox"}


def __getattr__(name: str) -> Any:
    """Import lazily: pytest imports the plug-in on every start, even if no test uses it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
