"""The scale of proofs: full in `make prove`, a twentieth in `make test-all`, even less in `make test`.

In: ARGOSY_PROOF_SCALE (1 is full). Out: the scale. Never: defines the size of a proof.
"""

from __future__ import annotations

import os

VARIABLE = "ARGOSY_PROOF_SCALE"
SHORT, FULL = 0.05, 1.0


def scale() -> float:
    return float(os.environ.get(VARIABLE, SHORT))


def is_full() -> bool:
    return scale() >= FULL
