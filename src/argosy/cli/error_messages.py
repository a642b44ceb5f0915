"""Errors on stderr: what failed, why, and what to type next.

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
    401: "log in again, such as with oc login; for a sandbox: argosy sandbox kubeconfig",
    403: "ask for the permission, or act as somebody who has it",
    404: "create what is missing first; a kind comes with its CustomResourceDefinition",
    409: "read the object again, and apply your change to what is there now",
}
UNTRUSTED = (
    "name who signed it, as certificate-authority of this cluster in the kubeconfig, or take a fresh kubeconfig; "
    "for a sandbox: argosy sandbox kubeconfig"
)
AWAY = "see whether the cluster runs, and whether the network (a VPN, a proxy) leads there"
AWAY_HERE = "see whether it still runs on this machine: argosy demo status, argosy sandbox status"
HERE = re.compile(r"(?:https?://)?(?:127\.|localhost\b|\[::1\])")


class Unread(BrokenPipeError):
    """Who read the output has gone, and the answer is known: the exit code stays what it would have been."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def _told(error: ArgosyError, said: str = "") -> tuple[str, str]:
    """What, and what next. Our own sentences end in advice, after a semicolon; a cluster's do not."""
    if isinstance(error, ClusterError):
        return str(error), ADVICE.get(error.code, "change what it names, and run the command again")
    what, _, advice = (said or str(error)).partition("; ")
    return what, advice or _usual_advice(error)


def _usual_advice(error: ArgosyError) -> str:
    from argosy.kube.client.status_errors import Unavailable, Untrusted  # late: most commands need no cluster

    if isinstance(error, Untrusted):
        return UNTRUSTED
    if isinstance(error, Unavailable):
        return AWAY_HERE if HERE.match(error.message) else AWAY
    return "correct that, and run the command again"


def failed(error: ArgosyError, doing: str = "") -> int:
    """What failed, why, and what to type next; and the exit code that scripts read."""
    with answering(code_of(error)) as code:
        tell(error, doing=doing)
    return code


def tell(error: ArgosyError, said: str = "", *, doing: str = "") -> None:
    """Tells it in its own words, or in those of somebody who knows more about where it happened."""
    what, advice = _told(error, said)
    say(doing or what, what if doing else "", advice)


def say(what: str, why: str | Sequence[str], advice: str) -> None:
    """What failed, why, and what to type next: what stands above every exit code but zero."""
    causes = [why] if isinstance(why, str) else list(why)
    lead = "why: "
    lines = [f"argosy: {what}"]
    for cause in filter(None, causes):
        lines.append(f"{lead}{cause}")
        lead = "     "
    from argosy.cli.target_flags import with_target  # late: it is for mistakes

    print(with_target("\n".join([*lines, f"next: {advice}"])), file=sys.stderr, flush=True)


@contextmanager
def answering(code: int) -> Iterator[int]:
    """What is printed under an answer that is known; who stops reading does not change it."""
    try:
        yield code
        sys.stdout.flush()
    except BrokenPipeError:
        raise Unread(code) from None
