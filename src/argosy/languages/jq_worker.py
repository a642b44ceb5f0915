"""Runs the real jq in a confined worker.

In: a document, and expressions to delete from it, one after another. Out: the rest of the document, and errors.
Never: runs in the main process: jq can run forever, read the environment, and end its process.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

try:
    import jq
except ImportError:
    jq = None


def delete_paths(payload: dict[str, Any]) -> dict[str, Any]:
    """argo: each expression runs as `del(…)`; if jq fails, the document is unchanged."""
    document = payload["document"]
    errors: dict[str, str] = {}
    for expression in payload["expressions"]:
        if jq is None:
            errors[expression] = "this expression needs jq; install argosy[jq], or write a plain path"
            continue
        try:
            program = _compile_deletion(expression)
        except ValueError as error:
            errors[expression] = f"jq cannot compile it, {_first_line(error)}; correct it"
            continue
        try:
            results = list(islice(program.input_value(document), 2))
        except ValueError:
            continue
        if len(results) == 1 and isinstance(results[0], dict):  # argo: several results are an error
            document = results[0]
    return {"document": document, "faults": errors}


@lru_cache(maxsize=256)
def _compile_deletion(expression: str) -> Any:
    return jq.compile(f"del({expression})")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no message"])[0][:200].removeprefix("jq: error: ")
