"""Runs untrusted functions and programs in confined processes with limits.

In: a function's name ("package.module:function") and JSON, or the command of a program (untrusted_program_runner.py).
Out: JSON, or the output of the program; or an error that names the exceeded limit.
Never: runs user code in the main process.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; importing typing would take longer than this whole package
if TYPE_CHECKING:
    from typing import Any

    from argosy.isolation.errors import ConfinedError, CrashError, LimitExceeded, NotConfinedError, RefusedError
    from argosy.isolation.limit_and_confinement_types import CallLimits, Confinement, ProgramLimits
    from argosy.isolation.trusted_process_pool import ProcessPool
    from argosy.isolation.worker_pool import WorkerPool

__all__ = [
    "CallLimits",
    "ConfinedError",
    "Confinement",
    "CrashError",
    "LimitExceeded",
    "NotConfinedError",
    "ProcessPool",
    "ProgramLimits",
    "RefusedError",
    "WorkerPool",
]

_LAZY_MODULES = {
    "Confinement": "limit_and_confinement_types",
    "CallLimits": "limit_and_confinement_types",
    "ProcessPool": "trusted_process_pool",
    "WorkerPool": "worker_pool",
    "ProgramLimits": "limit_and_confinement_types",
    "ConfinedError": "errors",
    "CrashError": "errors",
    "NotConfinedError": "errors",
    "LimitExceeded": "errors",
    "RefusedError": "errors",
}


def __getattr__(name: str) -> Any:
    # Lazy, because the fork server imports this package and must stay small: it must not load asyncio.
    module_name = _LAZY_MODULES.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module_name}"), name)
