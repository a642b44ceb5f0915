"""Lua as Argo CD runs it.

In: a script and a manifest. Out: what the script returned. Never: a stranger's script in this process: those go through
`confined` and a pool of `argosy.isolation`.
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
PATIENCE: Final = 3  # objects on which a script may run over its limits before the rest is spared


class Confined(Protocol):
    """What of a pool is needed: a batch in, an answer or an error for each."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


def run_health(
    script: str, manifest: Manifest, *, facts: Mapping[str, Any] | None = None, open_libs: bool = True, rule: str = ""
) -> Assessment:
    """Judge a manifest by a script of ours, in this process."""
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
    """What a script of ours returns, as JSON data; raises LuaFault. Lua's nil is None."""
    return kept_engine(open_libs=open_libs).run(script, manifest, params=params, facts=facts, trusted=True).value
