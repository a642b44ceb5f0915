"""Lists safe fixes: a refresh, a touch of the ArgoCD resource, and proven changes of an Application.

In: an Examination. Out: DoctorFix values, each with a description and an action. Never: changes what Git would undo;
acts without a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.features.align.application_files import owner_of
from argosy.features.doctor.remedies import Treatment
from argosy.features.doctor.service import Examination
from argosy.features.health_checks.argocd_install.merge import KEY_PREFIX
from argosy.gitops.analysis.alignment.manifest_edits import altered, edits_of
from argosy.gitops.analysis.live_view import LiveApp
from argosy.gitops.analysis.rules.live.health_checks import BROWSER, REFRESH
from argosy.gitops.analysis.rules.live.stalled_syncs import TOUCH
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.small_changes import refresh
from argosy.gitops.application_client.summary import health_word
from argosy.gitops.coexistence.argocd_settings import ARGOCD, CONFIG_MAP, SETTINGS
from argosy.gitops.health.kind_keys import joined
from argosy.kube.controller.wait import TooLate, until
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch

REFRESH_SECONDS: Final = 30.0
TOUCH_SECONDS: Final = 15.0
WRITTEN_AT: Final = "%Y-%m-%dT%H:%M:%S%z"

Act = Callable[[Desk], Awaitable[str]]


@dataclass(frozen=True)
class Fix:
    """`act` applies the fix and returns the result; None if it must be made in Git, as `text` describes."""

    subject: str
    text: str
    act: Act | None = None


def fixes(found: Examination) -> list[Fix]:
    return [*_touches(found), *_refreshes(found), *_changes(found)]


# -- the operator -----------------------------------------------------------------------------------------------------


def _touches(found: Examination) -> Iterator[Fix]:
    is_idle = any(each.rule.id == "AGY508" and each.place.file.startswith("ArgoCD/") for each in found.findings)
    settings = found.view.settings
    if not is_idle:
        return
    key = ResourceKey(*ARGOCD, settings.namespace, settings.owner)
    scripts = {f"{KEY_PREFIX}{joined(*of)}": script for of, script in settings.asked.items()}
    wanted = {name: scripts[name] for name in settings.unpropagated if name in scripts}

    async def touch(desk: Desk) -> str:
        at = datetime.now(UTC).strftime(WRITTEN_AT)
        await desk.cluster.patch(key, {"metadata": {"annotations": {TOUCH: at}}})

        def has_arrived(config: Manifest | None) -> bool:
            return wanted.items() <= ((config or {}).get("data") or {}).items()

        place = ResourceKey(*CONFIG_MAP, settings.namespace, SETTINGS)
        if await until(desk.cluster, place, has_arrived, TOUCH_SECONDS):
            return f"{SETTINGS} has {', '.join(wanted)} now"
        return f"{SETTINGS} still lacks {', '.join(wanted)} after {TOUCH_SECONDS:g} s: the operator does not act"

    yield Fix(f"ArgoCD/{settings.owner}", f"touch it ({TOUCH}), so that its operator looks at it anew", touch)


# -- stale health -----------------------------------------------------------------------------------------------------


def _refreshes(found: Examination) -> Iterator[Fix]:
    by_name = {app.name: app for app in found.chosen}
    for each in found.findings:
        app = by_name.get(each.place.file.removeprefix("Application/"))
        if each.rule.id == "AGY512" and app is not None and each.sight.fix.startswith(REFRESH):
            yield Fix(app.name, f"{REFRESH}, then read its health again", _refreshing(app))


def _refreshing(app: LiveApp) -> Act:
    async def act(desk: Desk) -> str:
        after = await refresh(desk, app.app, is_hard=True, seconds=REFRESH_SECONDS)
        return f"it is {health_word(after)} now; {BROWSER}"

    return act


# -- proven changes ---------------------------------------------------------------------------------------------------


def _changes(found: Examination) -> Iterator[Fix]:
    for app in found.chosen:
        treatment = found.treatments.get(app.name)
        if treatment is None or not treatment.cures:
            continue
        words = "; ".join(each.text for each in treatment.done)
        maker = _maker(found, app)
        if maker or any(each.file for each in treatment.done):
            where = f"{maker} makes it from Git" if maker else "it is about files of its source"
            yield Fix(app.name, f"{words}; {where}, so change it there: argosy align {app.name} --write")
            continue
        more = f"; keep the same in Git: argosy align {app.name} --patch -"
        yield Fix(app.name, f"{words} (in the cluster{more})", _changing(app, treatment))


def _maker(found: Examination, app: LiveApp) -> str:
    """Return the parent Application or ApplicationSet, which would undo a change in the cluster."""
    named = (each.name for each in found.view.apps for row in each.rows if row.key == app.app.key)
    return app.parent or owner_of(app.app) or next(named, "")


def _changing(app: LiveApp, treatment: Treatment) -> Act:
    async def act(desk: Desk) -> str:
        after = await desk.revise(app.app, lambda now: _patch(now.wire, treatment))
        with suppress(TooLate):  # no controller refreshes it now; the change stays
            await refresh(desk, after, is_hard=False, seconds=TOUCH_SECONDS)
        return f"changed; after a sync it is {treatment.proof.synced.words}: argosy app sync {after.name}"

    return act


def _patch(wire: Mapping[str, Any], treatment: Treatment) -> dict[str, Any] | None:
    """Build the patch for the current spec; None if it already has the changes."""
    spec = wire.get("spec") or {}
    made = altered(wire, edits_of(wire, treatment.done)).get("spec") or {}
    change: dict[str, Any] = merge_patch.diff(dict(spec), dict(made))
    return {"spec": change} if change else None
