"""Live rules about health checks: wrong health, waves that do not wait, old failures.

In: a live view. Out: violations. Never: recommends a check that exists and works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import LiveApp, LiveRow, LiveView, SettingsView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.rules.live.workloads import MODEL, is_ready
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind

NOTEBOOK: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
PREFIX: Final = "resource.customizations.health."
NOTEBOOK_KEY: Final = f"{PREFIX}mlops.mlops.dev_NotebookValidationJob"
_OPERATOR: Final = "deployment/jupyter-notebook-validator-operator-controller-manager"
_LOGS: Final = f"kubectl logs -n jupyter-notebook-validator-system {_OPERATOR}"
_UNSHOWN: Final = "no health is shown for NotebookValidationJob"
REFRESH: Final = "refresh it hard and wait 30 s"
BROWSER: Final = "then hard-refresh the browser (Ctrl+Shift+R, or Cmd+Shift+R)"


def _key(kind: GroupKind) -> str:
    return f"{PREFIX}{kind.group}_{kind.kind}" if kind.group else f"{PREFIX}{kind.kind}"


# -- ready, but not Healthy ------------------------------------------------------------------------------------------


def ready_rows(view: LiveView, app: LiveApp) -> list[tuple[LiveRow, str]]:
    """Return models and notebook jobs whose own status says that they are done, each with that status."""
    found = []
    for row in app.rows:
        live = view.by_key.get(row.key)
        if live is None:
            continue
        if row.key.group_kind == MODEL and is_ready(live):
            found.append((row, "its condition Ready is True"))
        elif row.key.group_kind == NOTEBOOK and mapping(live.get("status")).get("phase") == "Succeeded":
            found.append((row, "its status.phase is Succeeded"))
    return found


def _is_only_waiting(view: LiveView, app: LiveApp) -> bool:
    """True if Progressing although every model and notebook job is done and no other object is unhealthy."""
    mine = [row for row in app.rows if row.key.group_kind in (MODEL, NOTEBOOK)]
    done = {row.key for row, _ in ready_rows(view, app)}
    others = [row for row in app.rows if row not in mine]
    is_calm = all(row.health in ("", "Healthy") for row in others) and not app.blockers
    return bool(mine) and all(row.key in done for row in mine) and is_calm


def _misjudged(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if app.health == "Progressing" and not app.is_busy and _is_only_waiting(view, app):
            row, words = ready_rows(view, app)[0]
            told = _chain(view.settings, row.key.group_kind)
            if told is not None:
                text, fix = told
                more = f"; if its phase is wrong: {_LOGS}" if row.key.group_kind == NOTEBOOK else ""
                lead = f"{row.name}: {words}, but Argo CD shows Progressing"
                yield app.sight(f"{lead}: {text}", fix + more, subject=row.name)
    yield from _unseen(view)


def _chain(settings: SettingsView, kind: GroupKind) -> tuple[str, str] | None:
    """Check CR entry, ConfigMap key, refresh, browser; return the first that is missing. None if AGY508 reports it."""
    key = _key(kind)
    if key in settings.unpropagated:
        return None  # AGY508 reports the operator
    if settings.owner and kind not in settings.asked and key not in (settings.data or {}) and not settings.is_engine:
        text = f"no health check for {kind.kind} in ArgoCD CR {settings.owner}"
        return text, f"install it: argosy health apply --kinds {kind.kind}"
    if not settings.owner and settings.data is not None and key not in settings.data and not settings.is_engine:
        return f"no health check for {kind.kind} in argocd-cm", f"install it: argosy health apply --kinds {kind.kind}"
    where = "in ArgoCD CR and in ConfigMap" if settings.owner else "in ConfigMap" if settings.data else "not readable"
    text = f"the health check is {where}" if not settings.is_engine else "the shown health is outdated"
    text += f"; the application controller logs: {settings.errors[-1]}" if settings.errors else ""
    return text, f"{REFRESH}, or run argosy doctor --fix; {BROWSER}"


def _unseen(view: LiveView) -> Iterator[Sight]:
    """Report health that is not shown."""
    settings = view.settings
    apps = [app for app in view.apps if any(row.key.group_kind == NOTEBOOK for row in app.rows)]
    if not apps or settings.is_engine or NOTEBOOK in settings.judged or NOTEBOOK_KEY in settings.unpropagated:
        return
    if not settings.is_there:
        text = f"{_UNSHOWN}: ConfigMap argocd-cm does not exist in {settings.namespace}"
    elif settings.data is None:
        return  # no permission to read it
    else:
        text = f"{_UNSHOWN}: argocd-cm has no key {NOTEBOOK_KEY}"
        wrong = [key for key in settings.data if "notebookvalidationjob" in key.lower() and key.startswith("resource.")]
        if wrong:
            text = f"{_UNSHOWN}: the key {wrong[0]} is not spelled {NOTEBOOK_KEY}"
    fix = (
        "install the check: argosy health apply --kinds NotebookValidationJob; if nothing is shown after a minute:"
        f" kubectl logs -n {settings.namespace} -l app.kubernetes.io/name=argocd-server,"
        f" kubectl rollout restart deployment argocd-server -n {settings.namespace}"
    )
    yield Sight(Place(f"Application/{apps[0].name}"), text, fix, "ConfigMap/argocd-cm")


# -- waves that do not wait -------------------------------------------------------------------------------------------


def _unwaited(view: LiveView) -> Iterator[Sight]:
    settings = view.settings
    if settings.is_engine or settings.data is None or NOTEBOOK in settings.judged:
        return
    for app in view.apps:
        jobs = [row for row in app.rows if row.key.group_kind == NOTEBOOK and not row.hook]
        later = [row for row in app.rows if jobs and row.wave > min(job.wave for job in jobs)]
        if later:
            job = min(jobs, key=lambda row: row.wave)
            where = job.key.namespace or app.app.destination.namespace
            after = min((row for row in later if row.wave > job.wave), key=lambda row: row.wave)
            text = (
                f"wave {after.wave} ({after.name}) does not wait for {job.name} in wave {job.wave}: without a health"
                " check a sync waits only until the object is created, not until its notebook has run"
            )
            fix = (
                "install the check: argosy health apply --kinds NotebookValidationJob; or put a Job with hook: Sync"
                f" before it: argosy generate wait-for-notebook --name {job.key.name} --block-wave {after.wave}"
                f" -n {where}"
            )
            yield app.sight(text, fix, subject=job.name)


# -- old failures --------------------------------------------------------------------------------------------------


def _old_failures(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if app.health != "Degraded":
            continue
        phases = {row: _phase(view, row) for row in app.rows if row.key.group_kind == NOTEBOOK}
        failed = [row for row, phase in phases.items() if phase == "Failed"]
        if not failed or "Succeeded" not in phases.values():
            continue
        names = ", ".join(row.key.name for row in failed)
        namespace = failed[0].key.namespace or app.app.destination.namespace
        done = sum(phase == "Succeeded" for phase in phases.values())
        automated = app.app.policy.automated
        heals = automated is not None and automated.is_on and automated.self_heal
        again = "Argo CD recreates it automatically" if heals else f"then sync it: argosy app sync {app.name}"
        text = f"Degraded because notebook jobs Failed: {names}; {done} Succeeded"
        fix = (
            f"fix the notebook (argosy notebook logs {failed[0].key.name}); remove the job from Git if it is"
            f" old; or run it again: kubectl delete notebookvalidationjob {failed[0].key.name} -n {namespace};"
            f" {again}"
        )
        yield app.sight(text, fix, subject=failed[0].name)


def _phase(view: LiveView, row: LiveRow) -> str:
    return str(mapping((view.by_key.get(row.key) or {}).get("status")).get("phase") or "")


RULES: Final = (
    live_rule(
        "AGY512",
        Severity.WARNING,
        "Ready, but not shown as Healthy",
        "The Application stays Progressing, or shows no health, although everything works: later waves wait forever.",
        "The object's own status says that it is ready or has succeeded, and nothing else of the Application is"
        " unhealthy. The missing link is searched in order: entry of the ArgoCD resource, key of argocd-cm, refresh.",
        "Install the health check; if it is installed, hard-refresh the Application, then the browser.",
        _misjudged,
    ),
    live_rule(
        "AGY513",
        Severity.WARNING,
        "A wave does not wait for a notebook",
        "The notebook's result is used before it exists.",
        "No health check for the kind is in argocd-cm, and Argo CD has no built-in one: then an object counts as done"
        " once it is created. With the check, Argo CD waits for Succeeded and fails the sync on Failed.",
        "Install the health check, or generate a Job that waits, as a Sync hook: a PreSync hook would wait forever.",
        _unwaited,
    ),
    live_rule(
        "AGY514",
        Severity.WARNING,
        "Old notebook jobs keep an Application Degraded",
        "The Application stays Degraded although the notebooks that matter succeeded.",
        "The jobs that the Application manages were read: some have Failed, others Succeeded.",
        "Fix the notebook, remove the job from Git, or delete it so that it runs again. Argo CD recreates it only with"
        " automated sync and selfHeal; else sync manually.",
        _old_failures,
    ),
)
