"""What a confined worker runs. Imported before the worker is locked in, when files can still be read.

In, out: JSON. The rule and the pattern that are run on import make the libraries load
everything that they load late.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema import crd
from argosy.kube.schema.cel import evaluate
from argosy.kube.schema.crd import patterns

__all__ = ["check_definition", "evaluate"]


def check_definition(payload: Any) -> Any:
    """The faults of a definition, whose rules are compiled for it."""
    faults = crd.check_definition(payload["definition"], payload["old"])
    return [[fault.field, str(fault.kind), fault.message] for fault in faults]


evaluate([{"rule": "self.matches('a') || [self].exists(x, x.startsWith('b'))", "self": "a", "message": ""}])
patterns.problem("(?i)a")
