"""Runs Lua scripts as Argo CD does.

In: a script and a manifest. Out: the result of the script. Never: runs a user's script in this process: those run in a
pool of `argosy.isolation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.health.lua.engine import Answer, Engine, kept_engine
from argosy.gitops.health.lua.health_results import answer_of, failed, health_of
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.kube.objects import Manifest

__all__ = [
    "EVALUATE",
    "FIELDS_READ",
    "PATIENCE",
    "Answer",
    "Confined",
    "Engine",
    "LuaFault",
    "answer_of",
    "failed",
    "health_of",
    "run_health",
    "run_value",
]

EVALUATE: Final = "argosy.gitops.health.lua.worker:evaluate"
FIELDS_READ: Final = "argosy.gitops.health.lua.worker:fields_read"
PATIENCE: Final = 3  # objects on which a script may exceed its limits before it is skipped for the rest


class Confined(Protocol):
    """The part of a worker pool that this package needs: runs a batch, returns a result or an error per payload."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


def run_health(
    script: str, manifest: Manifest, *, facts: Mapping[str, Any] | None = None, open_libs: bool = True, rule: str = ""
) -> Assessment:
    """Assess a manifest with a bundled script, in this process."""
    try:
        return health_of(kept_engine(open_libs=open_libs).run(script, manifest, facts=facts, trusted=True), rule=rule)
    except LuaFault as fault:
        return failed(str(fault), rule=rule)


def run_value(
    script: str,
    manifest: Manifest,
    *,
    params: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    open_libs: bool = False,
) -> Any:
    """Return the result of a bundled script as JSON data; nil is None. Raises LuaFault."""
    return kept_engine(open_libs=open_libs).run(script, manifest, params=params, facts=facts, trusted=True).value
