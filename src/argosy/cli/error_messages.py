"""Error messages on stderr: what failed, why, and what to type next.

In: an error, or sentences. Out: an exit code. Never: a traceback.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from argosy.cli.exit_codes import get_exit_code
from argosy.errors import ArgosyError, ClusterError

ADVICE_BY_CODE = {
    401: "log in again, for example with oc login; for a sandbox: argosy sandbox kubeconfig",
    403: "ask an administrator for the permission, or use an account that has it",
    404: "create the missing object first; for an unknown kind, install its CustomResourceDefinition",
    409: "read the object again and reapply your change",
}
UNTRUSTED_ADVICE = (
    "set certificate-authority of this cluster in the kubeconfig, or get a new kubeconfig; "
    "for a sandbox: argosy sandbox kubeconfig"
)
UNREACHABLE_ADVICE = "check that the cluster is running and reachable over the network (VPN, proxy)"
UNREACHABLE_LOCAL_ADVICE = "check that it is still running: argosy demo status, argosy sandbox status"
LOCAL_ADDRESS = re.compile(r"(?:https?://)?(?:127\.|localhost\b|\[::1\])")


class OutputClosed(BrokenPipeError):
    """The reader of stdout closed the pipe after the result was known; keeps the exit code of the result."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def _split_message(error: ArgosyError, message: str = "") -> tuple[str, str]:
    """Split an error into problem and advice. Our messages have advice after a semicolon; those of a cluster do not."""
    if isinstance(error, ClusterError):
        return str(error), ADVICE_BY_CODE.get(error.code, "correct the object and run the command again")
    problem, _, advice = (message or str(error)).partition("; ")
    return problem, advice or _get_default_advice(error)


def _get_default_advice(error: ArgosyError) -> str:
    from argosy.kube.client.status_errors import (  # late: most commands do not need a cluster
        ApiServerNotTrusted,
        ApiServerUnavailable,
    )

    if isinstance(error, ApiServerNotTrusted):
        return UNTRUSTED_ADVICE
    if isinstance(error, ApiServerUnavailable):
        return UNREACHABLE_LOCAL_ADVICE if LOCAL_ADDRESS.match(error.message) else UNREACHABLE_ADVICE
    return "correct this and run the command again"


def report_error(error: ArgosyError, failed_command: str = "") -> int:
    """Print the error with its reason and the next step, and return the exit code."""
    with keep_exit_code(get_exit_code(error)) as code:
        print_error(error, failed_command=failed_command)
    return code


def print_error(error: ArgosyError, message: str = "", *, failed_command: str = "") -> None:
    """Print an error with its own message, or with a more specific one."""
    problem, advice = _split_message(error, message)
    print_failure(failed_command or problem, problem if failed_command else "", advice)


def print_failure(problem: str, reason: str | Sequence[str], advice: str) -> None:
    """Print what failed, why, and what to type next, as for every exit code except zero."""
    causes = [reason] if isinstance(reason, str) else list(reason)
    prefix = "why: "
    lines = [f"argosy: {problem}"]
    for cause in filter(None, causes):
        lines.append(f"{prefix}{cause}")
        prefix = "     "
    from argosy.cli.cluster_flags import add_target_flags_to_printed_commands  # late: only needed for errors

    print(add_target_flags_to_printed_commands("\n".join([*lines, f"next: {advice}"])), file=sys.stderr, flush=True)


@contextmanager
def keep_exit_code(code: int) -> Iterator[int]:
    """Keep the exit code of a known result, even if the reader of stdout closes the pipe."""
    try:
        yield code
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed(code) from None
