"""The GitOps repository as tests: a plug-in for pytest, and what its fixtures give.

In: a repository, pytest. Out: Repo, Manifests, Sandbox. Never: imports anything before a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy.testing.manifests import Manifests
    from argosy.testing.repository import Repo
    from argosy.testing.sandbox import Sandbox

__all__ = ["Manifests", "Repo", "Sandbox"]
_HOMES = {"Manifests": "manifests", "Repo": "repository", "Sandbox": "sandbox"}


def __getattr__(name: str) -> Any:
    """Late: pytest imports the plug-in on every start, whether a test uses it or not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
