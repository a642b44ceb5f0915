"""Live rules about destination clusters: unreachable clusters, and cluster Secrets that cannot be used.

In: a live view. Out: violations. Never: blames a repository for a failure of a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveApp, LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Severity, Sight

MOST: Final = 240  # characters of a quoted message
UNREAD: Final = "Failed to load live state: "  # argo: prefix of messages about a cluster
_CLUSTER: Final = re.compile(r"cluster (?P<name>.+?) \((?P<server>[^\s()]*)\): (?P<why>.*)", re.DOTALL)
_SECRET: Final = re.compile(r" \(Secret (?P<secret>\S+)\)$")
_UNKNOWN: Final = re.compile(r"there are no clusters with this name|error getting cluster by (server|name)")
_UNMANAGED: Final = re.compile(r"is not managed$|can not be managed when in namespaced mode$")
_REFUSED: Final = re.compile(r"unauthori[sz]ed|forbidden|\b40[13]\b", re.IGNORECASE)


def cluster_trouble(app: LiveApp) -> str:
    """Return the message about the destination cluster; empty if the cluster is not the cause."""
    said = app.said("ComparisonError")
    if said.startswith(UNREAD):
        return said.removeprefix(UNREAD)
    said = app.said("InvalidSpecError")
    return said if _UNKNOWN.search(said) else ""


def _unusable(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if said := cluster_trouble(app):
            text, fix = _told(app, said, view.settings.namespace or app.app.namespace)
            yield app.sight(text, fix, subject=_place(app), field="spec.destination")


def _place(app: LiveApp) -> str:
    return app.app.destination.name or app.app.destination.server or "its destination"


def _told(app: LiveApp, said: str, control: str) -> tuple[str, str]:
    """Return the problem and the fix."""
    if _UNKNOWN.search(said):
        way = "use a known cluster: argosy cluster list; or add it: argosy cluster add CONTEXT"
        return f"cluster {_place(app)} is unknown: {_short(said)}", way
    named = _CLUSTER.match(said)
    name = named["name"] if named else _place(app)
    look = f"argosy cluster get {shlex.quote(name)}"
    if _UNMANAGED.search(said):
        way = f"see the namespaces in its Secret: {look}; change them: argosy cluster set {shlex.quote(name)}"
        return f"cluster {name} is managed in some namespaces only: {_short(said)}", f"{way} --namespace …"
    if named is None:
        return f"the live state of cluster {name} cannot be read: {_short(said)}", f"see: {look}"
    server = named["server"]
    why = named["why"].removeprefix(f"{server.partition('://')[2]}: ").removeprefix("cannot be reached: ")
    if secret := _SECRET.search(why):
        lead = f"Secret {secret['secret']} of cluster {name} ({server}) cannot be used"
        way = f"correct Secret {secret['secret']} in namespace {control}; see: {look}"
        return f"{lead}: {_short(_SECRET.sub('', why))}", way
    if "certificate" in why:
        way = "set its CA as caData of tlsClientConfig in its Secret, or add it again with --upsert"
        return f"cluster {name} ({server}) has an untrusted certificate: {_short(why)}", f"see it: {look}; then {way}"
    if _REFUSED.search(why):
        way = f"renew its credentials: argosy cluster rotate {shlex.quote(name)}; or add it again with --upsert"
        return f"cluster {name} ({server}) rejects the credentials: {_short(why)}", f"see it: {look}; then {way}"
    return f"cluster {name} ({server}) cannot be reached: {_short(why)}", f"check whether it responds now: {look}"


def _short(said: str) -> str:
    text = said.replace("\n", " ").partition("; ")[0]
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


RULES: Final = (
    live_rule(
        "AGY519",
        Severity.ERROR,
        "The destination cluster cannot be used",
        "Its live state is unknown: nothing is compared or synced, and syncs wait until it responds.",
        "The Application's condition names the cluster and its error, or the Secret that cannot be used.",
        "Check it: argosy cluster get NAME. Correct its Secret, or renew its token: argosy cluster rotate NAME.",
        _unusable,
    ),
)
