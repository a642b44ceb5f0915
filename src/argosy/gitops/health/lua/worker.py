"""What a confined worker runs: scripts of strangers. Imported before the worker is locked in.

In: {"script", "manifest", "params", "facts", "open"}. Out: {"type", "value"} or {"fault"}. Never: runs unconfined.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.health.lua.engine import OUT_OF_MEMORY, strangers_engine
from argosy.gitops.health.lua.field_reads import reads
from argosy.gitops.health.lua.script_error import LuaFault


def evaluate(payload: Any) -> Any:
    """Run one script on one manifest."""
    try:
        answer = strangers_engine(open_libs=payload.get("open", False)).run(
            payload["script"], payload["manifest"], params=payload.get("params"), facts=payload.get("facts")
        )
    except LuaFault as fault:
        if OUT_OF_MEMORY in str(fault):
            raise MemoryError from None  # a state that was full may fail the next script too: this worker is done
        return {"fault": str(fault)}
    return {"type": answer.type, "value": answer.value}


def fields_read(script: Any) -> Any:
    """Which fields of an object the script reads; None: it may read all of them."""
    return reads(script)


# The states are made here, while their files can still be read; a worker is a fork of this process.
for is_open in (False, True):
    strangers_engine(open_libs=is_open).run("return {}", {})
