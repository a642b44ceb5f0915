"""Exit codes, as in docs/reference/exit-codes.md. In: an error. Out: its code. Never: another code."""

from __future__ import annotations

from argosy.errors import (
    ArgosyError,
    ClusterError,
    Forbidden,
    PolicyError,
    SourceRefused,
    SourceUnreachable,
    TransientError,
)

EXIT_OK, EXIT_NEGATIVE, EXIT_ERROR, EXIT_UNREACHABLE, EXIT_TIMED_OUT, EXIT_REFUSED, EXIT_INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    130,
)


def get_exit_code(error: ArgosyError) -> int:
    match error:
        case PolicyError() | Forbidden() | SourceRefused():
            return EXIT_REFUSED
        case TransientError(clears_by_itself=False):
            return EXIT_ERROR
        case TransientError() | SourceUnreachable():
            return EXIT_UNREACHABLE
        case ClusterError(code=401):
            return EXIT_REFUSED
    return EXIT_ERROR
