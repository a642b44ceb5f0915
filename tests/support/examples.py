"""The number of examples of a property test: all of them in `make prove`, an eighth elsewhere.

In: the full number. Out: the number for `@settings(max_examples=…)`. Never: less than a useful minimum.
"""

from __future__ import annotations

from support import proof_scale

USUAL = 100  # the default of Hypothesis
FEWEST, SHARE = 15, 8


def examples(full: int = USUAL) -> int:
    return full if proof_scale.is_full() else min(full, max(FEWEST, full // SHARE))
