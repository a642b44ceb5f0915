"""The real jq, in a confined worker.

In: a document, and expressions to remove from it, one after another. Out: what is left, and what was wrong.
Never: runs in the main process: jq can run for ever, read the environment, and end the process that it is in.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

try:
    import jq
except ImportError:
    jq = None



def remove(payload: dict[str, Any]) -> dict[str, Any]:
    """argo: each is run as `del(…)`; where that ends in an error, the document stays as it is."""
    document = payload["document"]
    faults: dict[str, str] = {}
    for expression in payload["expressions"]:
        if jq is None:
            faults[expression] = "it needs jq; install argosy[jq], or write a plain path"
            continue
        try:
            program = _compiled(expression)
        except ValueError as error:
            faults[expression] = f"jq does not understand it, {_first_line(error)}; correct it"
            continue
        try:
            found = list(islice(program.input_value(document), 2))
        except ValueError:
            continue
        if len(found) == 1 and isinstance(found[0], dict):  # argo: several results are an error
            document = found[0]
    return {"document": document, "faults": faults}


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    return jq.compile(f"del({expression})")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it says no more"])[0][:200].removeprefix("jq: error: ")
