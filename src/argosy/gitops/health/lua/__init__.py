"""Runs Lua scripts as Argo CD does.

In: a script and a manifest. Out: the result of the script. Never: runs a user's script in this process: those run in a
pool of `argosy.isolation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.health.lua.engine import LuaEngine, ScriptResult, shared_engine
from argosy.gitops.health.lua.health_results import failed_assessment, read_health, read_script_result
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.kube.objects import Manifest

__all__ = [
    "EVALUATE_FUNCTION",
    "FIELDS_READ_FUNCTION",
    "MAX_LIMIT_FAILURES",
    "BatchRunner",
    "LuaEngine",
    "LuaFault",
    "ScriptResult",
    "failed_assessment",
    "read_health",
    "read_script_result",
    "run_health_script",
    "run_script",
]

EVALUATE_FUNCTION: Final = "argosy.gitops.health.lua.worker:run_user_script"
FIELDS_READ_FUNCTION: Final = "argosy.gitops.health.lua.worker:list_fields_read"
MAX_LIMIT_FAILURES: Final = 3  # objects on which a script may exceed its limits before it is skipped for the rest


class BatchRunner(Protocol):
    """The part of a worker pool that this package needs: runs a batch, returns a result or an error per payload."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


def run_health_script(
    script: str, manifest: Manifest, *, facts: Mapping[str, Any] | None = None, open_libs: bool = True, rule: str = ""
) -> Assessment:
    """Assess a manifest with a bundled script, in this process."""
    try:
        return read_health(
            shared_engine(open_libs=open_libs).run(script, manifest, facts=facts, trusted=True), rule=rule
        )
    except LuaFault as fault:
        return failed_assessment(str(fault), rule=rule)


def run_script(
    script: str,
    manifest: Manifest,
    *,
    params: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    open_libs: bool = False,
) -> Any:
    """Return the result of a bundled script as JSON data; nil is None. Raises LuaFault."""
    return shared_engine(open_libs=open_libs).run(script, manifest, params=params, facts=facts, trusted=True).value
