"""Entry points of the confined CEL worker. Imported before confinement, while files can still be read.

In, out: JSON. The rule and the pattern that run on import make the libraries load
all their lazily imported modules.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema import crd
from argosy.kube.schema.cel import evaluate
from argosy.languages import go_regexp

__all__ = ["check_definition", "evaluate"]


def check_definition(payload: Any) -> Any:
    """Return the errors of a CRD; compiles its CEL rules."""
    errors = crd.check_definition(payload["definition"], payload["old"])
    return [[error.field, str(error.kind), error.message] for error in errors]


evaluate([{"rule": "self.matches('a') || [self].exists(x, x.startsWith('b'))", "self": "a", "message": ""}])
go_regexp.find_pattern_error("(?i)a")
