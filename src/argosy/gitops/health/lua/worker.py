"""Functions that run users' scripts in an isolated worker. Imported before the worker is isolated.

In: {"script", "manifest", "params", "facts", "open"}. Out: {"type", "value"} or {"fault"}.
Never: runs outside an isolated worker.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.health.lua.engine import OUT_OF_MEMORY_MESSAGE, user_script_engine
from argosy.gitops.health.lua.field_reads import find_field_reads
from argosy.gitops.health.lua.script_error import LuaFault


def run_user_script(payload: Any) -> Any:
    """Run one script on one manifest."""
    try:
        script_result = user_script_engine(open_libs=payload.get("open", False)).run(
            payload["script"], payload["manifest"], params=payload.get("params"), facts=payload.get("facts")
        )
    except LuaFault as fault:
        if OUT_OF_MEMORY_MESSAGE in str(fault):
            raise MemoryError from None  # a state that ran out of memory may fail the next script, too: end this worker
        return {"fault": str(fault)}
    return {"type": script_result.type, "value": script_result.value}


def list_fields_read(script: Any) -> Any:
    """Return the fields of an object that the script reads; None: it may read all of them."""
    return find_field_reads(script)


# Create the states now, while their files are readable; a worker is a fork of this process.
for is_open in (False, True):
    user_script_engine(open_libs=is_open).run("return {}", {})
