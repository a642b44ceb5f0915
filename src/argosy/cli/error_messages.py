"""Error messages on stderr: what failed, why, and what to type next.

In: an error, or sentences. Out: an exit code. Never: a traceback.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from argosy.cli.exit_codes import code_of
from argosy.errors import ArgosyError, ClusterError

ADVICE = {
    401: "log in again, for example with oc login; for a sandbox: argosy sandbox kubeconfig",
    403: "ask an administrator for the permission, or use an account that has it",
    404: "create the missing object first; for an unknown kind, install its CustomResourceDefinition",
    409: "read the object again and reapply your change",
}
UNTRUSTED = (
    "set certificate-authority of this cluster in the kubeconfig, or get a new kubeconfig; "
    "for a sandbox: argosy sandbox kubeconfig"
)
AWAY = "check that the cluster is running and reachable over the network (VPN, proxy)"
AWAY_HERE = "check that it is still running: argosy demo status, argosy sandbox status"
HERE = re.compile(r"(?:https?://)?(?:127\.|localhost\b|\[::1\])")


class Unread(BrokenPipeError):
    """The reader of stdout closed the pipe after the result was known; keeps the exit code of the result."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def _told(error: ArgosyError, said: str = "") -> tuple[str, str]:
    """Split an error into problem and advice. Our messages have advice after a semicolon; those of a cluster do not."""
    if isinstance(error, ClusterError):
        return str(error), ADVICE.get(error.code, "correct the object and run the command again")
    what, _, advice = (said or str(error)).partition("; ")
    return what, advice or _usual_advice(error)


def _usual_advice(error: ArgosyError) -> str:
    from argosy.kube.client.status_errors import Unavailable, Untrusted  # late: most commands do not need a cluster

    if isinstance(error, Untrusted):
        return UNTRUSTED
    if isinstance(error, Unavailable):
        return AWAY_HERE if HERE.match(error.message) else AWAY
    return "correct this and run the command again"


def failed(error: ArgosyError, doing: str = "") -> int:
    """Print the error with its reason and the next step, and return the exit code."""
    with answering(code_of(error)) as code:
        tell(error, doing=doing)
    return code


def tell(error: ArgosyError, said: str = "", *, doing: str = "") -> None:
    """Print an error with its own message, or with a more specific one."""
    what, advice = _told(error, said)
    say(doing or what, what if doing else "", advice)


def say(what: str, why: str | Sequence[str], advice: str) -> None:
    """Print what failed, why, and what to type next, as for every exit code except zero."""
    causes = [why] if isinstance(why, str) else list(why)
    lead = "why: "
    lines = [f"argosy: {what}"]
    for cause in filter(None, causes):
        lines.append(f"{lead}{cause}")
        lead = "     "
    from argosy.cli.target_flags import with_target  # late: only needed for errors

    print(with_target("\n".join([*lines, f"next: {advice}"])), file=sys.stderr, flush=True)


@contextmanager
def answering(code: int) -> Iterator[int]:
    """Keep the exit code of a known result, even if the reader of stdout closes the pipe."""
    try:
        yield code
        sys.stdout.flush()
    except BrokenPipeError:
        raise Unread(code) from None
