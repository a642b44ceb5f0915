"""How many examples a property test tries: all of them in `make prove`, an eighth elsewhere.

In: the full number. Out: the number for `@settings(max_examples=…)`. Never: fewer than the fewest that say something.
"""

from __future__ import annotations

from support import proof_scale

USUAL = 100  # what Hypothesis tries unless told
FEWEST, SHARE = 15, 8


def examples(full: int = USUAL) -> int:
    return full if proof_scale.is_full() else min(full, max(FEWEST, full // SHARE))
