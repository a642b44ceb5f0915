"""Live rules about destination clusters: unreachable clusters, and cluster Secrets that cannot be used.

In: a live view. Out: violations. Never: blames a repository for a failure of a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveApplication, LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import Severity, Violation

MAX_MESSAGE_CHARACTERS: Final = 240  # characters of a quoted message
LIVE_STATE_ERROR_PREFIX: Final = "Failed to load live state: "  # argo: prefix of messages about a cluster
_CLUSTER_MESSAGE: Final = re.compile(r"cluster (?P<name>.+?) \((?P<server>[^\s()]*)\): (?P<why>.*)", re.DOTALL)
_SECRET_SUFFIX: Final = re.compile(r" \(Secret (?P<secret>\S+)\)$")
_UNKNOWN_CLUSTER: Final = re.compile(r"there are no clusters with this name|error getting cluster by (server|name)")
_UNMANAGED_NAMESPACE: Final = re.compile(r"is not managed$|can not be managed when in namespaced mode$")
_CREDENTIALS_REJECTED: Final = re.compile(r"unauthori[sz]ed|forbidden|\b40[13]\b", re.IGNORECASE)


def find_cluster_error(app: LiveApplication) -> str:
    """Return the message about the destination cluster; empty if the cluster is not the cause."""
    message = app.find_condition_message("ComparisonError")
    if message.startswith(LIVE_STATE_ERROR_PREFIX):
        return message.removeprefix(LIVE_STATE_ERROR_PREFIX)
    message = app.find_condition_message("InvalidSpecError")
    return message if _UNKNOWN_CLUSTER.search(message) else ""


def _find_unusable_clusters(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if message := find_cluster_error(app):
            text, fix = _render_problem_and_fix(app, message, view.settings.namespace or app.app.namespace)
            yield app.build_violation(text, fix, subject=_render_destination(app), field="spec.destination")


def _render_destination(app: LiveApplication) -> str:
    return app.app.destination.name or app.app.destination.server or "its destination"


def _render_problem_and_fix(app: LiveApplication, message: str, control_namespace: str) -> tuple[str, str]:
    """Return the problem and the fix."""
    if _UNKNOWN_CLUSTER.search(message):
        fix = "use a known cluster: argosy cluster list; or add it: argosy cluster add CONTEXT"
        return f"cluster {_render_destination(app)} is unknown: {_shorten(message)}", fix
    match = _CLUSTER_MESSAGE.match(message)
    name = match["name"] if match else _render_destination(app)
    command = f"argosy cluster get {shlex.quote(name)}"
    if _UNMANAGED_NAMESPACE.search(message):
        fix = f"see the namespaces in its Secret: {command}; change them: argosy cluster set {shlex.quote(name)}"
        return f"cluster {name} is managed in some namespaces only: {_shorten(message)}", f"{fix} --namespace …"
    if match is None:
        return f"the live state of cluster {name} cannot be read: {_shorten(message)}", f"see: {command}"
    server = match["server"]
    reason = match["why"].removeprefix(f"{server.partition('://')[2]}: ").removeprefix("cannot be reached: ")
    if secret := _SECRET_SUFFIX.search(reason):
        prefix = f"Secret {secret['secret']} of cluster {name} ({server}) cannot be used"
        fix = f"correct Secret {secret['secret']} in namespace {control_namespace}; see: {command}"
        return f"{prefix}: {_shorten(_SECRET_SUFFIX.sub('', reason))}", fix
    if "certificate" in reason:
        fix = "set its CA as caData of tlsClientConfig in its Secret, or add it again with --upsert"
        return (
            f"cluster {name} ({server}) has an untrusted certificate: {_shorten(reason)}",
            f"see it: {command}; then {fix}",
        )
    if _CREDENTIALS_REJECTED.search(reason):
        fix = f"renew its credentials: argosy cluster rotate {shlex.quote(name)}; or add it again with --upsert"
        return (
            f"cluster {name} ({server}) rejects the credentials: {_shorten(reason)}",
            f"see it: {command}; then {fix}",
        )
    return (
        f"cluster {name} ({server}) cannot be reached: {_shorten(reason)}",
        f"check whether it responds now: {command}",
    )


def _shorten(message: str) -> str:
    text = message.replace("\n", " ").partition("; ")[0]
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else f"{text[: MAX_MESSAGE_CHARACTERS - 1]}…"


RULES: Final = (
    build_live_rule(
        "AGY519",
        Severity.ERROR,
        "The destination cluster cannot be used",
        "Its live state is unknown: nothing is compared or synced, and syncs wait until it responds.",
        "The Application's condition names the cluster and its error, or the Secret that cannot be used.",
        "Check it: argosy cluster get NAME. Correct its Secret, or renew its token: argosy cluster rotate NAME.",
        _find_unusable_clusters,
    ),
)
