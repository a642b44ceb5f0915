"""What a confined worker runs. Imported before the worker is locked in, when files can still be read.

In, out: as `evaluate`. The rule that is run on import makes the library load everything that it loads late.
"""

from __future__ import annotations

from argosy.schema.cel import evaluate

__all__ = ["evaluate"]

evaluate([{"rule": "self.matches('a') || [self].exists(x, x.startsWith('b'))", "self": "a", "message": ""}])
