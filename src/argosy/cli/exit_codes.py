"""Exit codes, as in docs/reference/exit-codes.md. In: an error. Out: its code. Never: another code."""

from __future__ import annotations

from argosy.errors import ArgosyError, ClusterError, Forbidden, PolicyError, SourceRefused, TransientError, Unreachable

DONE, NO, CANNOT, UNREACHABLE, TIMED_OUT, REFUSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def code_of(error: ArgosyError) -> int:
    match error:
        case PolicyError() | Forbidden() | SourceRefused():
            return REFUSED
        case TransientError(passes=False):
            return CANNOT
        case TransientError() | Unreachable():
            return UNREACHABLE
        case ClusterError(code=401):
            return REFUSED
    return CANNOT
