"""Runs untrusted functions and programs in confined processes with limits.

In: a function's name ("package.module:function") and JSON, or the command of a program (program.py).
Out: JSON, or the output of the program; or an error that names the exceeded limit.
Never: runs user code in the main process.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; importing typing would take longer than this whole package
if TYPE_CHECKING:
    from typing import Any

    from argosy.isolation.errors import ConfinedError, CrashError, NotConfinedError, OverLimit, RefusedError
    from argosy.isolation.limits import Confinement, Limits, ProgramLimits
    from argosy.isolation.process_pool import Crew
    from argosy.isolation.worker_pool import Pool

__all__ = [
    "ConfinedError",
    "Confinement",
    "CrashError",
    "Crew",
    "Limits",
    "NotConfinedError",
    "OverLimit",
    "Pool",
    "ProgramLimits",
    "RefusedError",
]

_HOMES = {
    "Confinement": "limits",
    "Limits": "limits",
    "Crew": "process_pool",
    "Pool": "worker_pool",
    "ProgramLimits": "limits",
    "ConfinedError": "errors",
    "CrashError": "errors",
    "NotConfinedError": "errors",
    "OverLimit": "errors",
    "RefusedError": "errors",
}


def __getattr__(name: str) -> Any:
    # Lazy, because the fork server imports this package and must stay small: it must not load asyncio.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
