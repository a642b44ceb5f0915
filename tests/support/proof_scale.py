"""How much of a proof runs: all of it in `make prove`, a twentieth in `make test-all`, still less in `make test`.

In: ARGOSY_PROOF_SCALE (1 is full). Out: the scale. Never: a size of its own.
"""

from __future__ import annotations

import os

VARIABLE = "ARGOSY_PROOF_SCALE"
SHORT, FULL = 0.05, 1.0


def scale() -> float:
    return float(os.environ.get(VARIABLE, SHORT))


def is_full() -> bool:
    return scale() >= FULL
