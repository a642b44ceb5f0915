"""Live rules about health checks: wrong health, waves that do not wait, old failures.

In: a live view. Out: violations. Never: recommends a check that exists and works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.live_view import InstallationView, LiveApplication, LiveResource, LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.rules.live.pvc_image_model_failures import is_model_ready
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB

HEALTH_KEY_PREFIX: Final = "resource.customizations.health."
NOTEBOOK_KEY: Final = f"{HEALTH_KEY_PREFIX}mlops.mlops.dev_NotebookValidationJob"
_OPERATOR_DEPLOYMENT: Final = "deployment/jupyter-notebook-validator-operator-controller-manager"
_OPERATOR_LOGS_COMMAND: Final = f"kubectl logs -n jupyter-notebook-validator-system {_OPERATOR_DEPLOYMENT}"
_NO_HEALTH_SHOWN: Final = "no health is shown for NotebookValidationJob"
REFRESH_ADVICE: Final = "refresh it hard and wait 30 s"
BROWSER_ADVICE: Final = "then hard-refresh the browser (Ctrl+Shift+R, or Cmd+Shift+R)"


def _build_health_key(kind: GroupKind) -> str:
    return f"{HEALTH_KEY_PREFIX}{kind.group}_{kind.kind}" if kind.group else f"{HEALTH_KEY_PREFIX}{kind.kind}"


# -- ready, but not Healthy ------------------------------------------------------------------------------------------


def list_ready_models_and_jobs(view: LiveView, app: LiveApplication) -> list[tuple[LiveResource, str]]:
    """Return models and notebook jobs whose own status says that they are done, each with that status."""
    finished = []
    for resource in app.resources:
        live = view.by_key.get(resource.key)
        if live is None:
            continue
        if resource.key.group_kind == INFERENCE_SERVICE and is_model_ready(live):
            finished.append((resource, "its condition Ready is True"))
        elif resource.key.group_kind == NOTEBOOK_JOB and as_mapping(live.get("status")).get("phase") == "Succeeded":
            finished.append((resource, "its status.phase is Succeeded"))
    return finished


def _is_progressing_though_finished(view: LiveView, app: LiveApplication) -> bool:
    """True if Progressing although every model and notebook job is done and no other object is unhealthy."""
    checked = [resource for resource in app.resources if resource.key.group_kind in (INFERENCE_SERVICE, NOTEBOOK_JOB)]
    finished_keys = {resource.key for resource, _ in list_ready_models_and_jobs(view, app)}
    other_resources = [resource for resource in app.resources if resource not in checked]
    are_others_healthy = all(resource.health in ("", "Healthy") for resource in other_resources) and not app.blockers
    return bool(checked) and all(resource.key in finished_keys for resource in checked) and are_others_healthy


def _find_wrong_health(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if app.health == "Progressing" and not app.has_running_operation and _is_progressing_though_finished(view, app):
            resource, status_text = list_ready_models_and_jobs(view, app)[0]
            missing_link = _find_health_check_gap(view.settings, resource.key.group_kind)
            if missing_link is not None:
                text, fix = missing_link
                log_text = (
                    f"; if its phase is wrong: {_OPERATOR_LOGS_COMMAND}"
                    if resource.key.group_kind == NOTEBOOK_JOB
                    else ""
                )
                prefix = f"{resource.name}: {status_text}, but Argo CD shows Progressing"
                yield app.build_violation(f"{prefix}: {text}", fix + log_text, subject=resource.name)
    yield from _find_missing_notebook_check(view)


def _find_health_check_gap(settings: InstallationView, kind: GroupKind) -> tuple[str, str] | None:
    """Check CR entry, ConfigMap key, refresh, browser; return the first that is missing. None if AGY508 reports it."""
    key = _build_health_key(kind)
    if key in settings.missing_keys:
        return None  # AGY508 reports the operator
    if (
        settings.owner
        and kind not in settings.requested_scripts
        and key not in (settings.data or {})
        and not settings.is_delivered_by_argosy
    ):
        text = f"no health check for {kind.kind} in ArgoCD CR {settings.owner}"
        return text, f"install it: argosy health apply --kinds {kind.kind}"
    if (
        not settings.owner
        and settings.data is not None
        and key not in settings.data
        and not settings.is_delivered_by_argosy
    ):
        return f"no health check for {kind.kind} in argocd-cm", f"install it: argosy health apply --kinds {kind.kind}"
    location_text = (
        "in ArgoCD CR and in ConfigMap" if settings.owner else "in ConfigMap" if settings.data else "not readable"
    )
    text = (
        f"the health check is {location_text}"
        if not settings.is_delivered_by_argosy
        else "the shown health is outdated"
    )
    text += f"; the application controller logs: {settings.errors[-1]}" if settings.errors else ""
    return text, f"{REFRESH_ADVICE}, or run argosy doctor --fix; {BROWSER_ADVICE}"


def _find_missing_notebook_check(view: LiveView) -> Iterator[Violation]:
    """Report health that is not shown."""
    settings = view.settings
    apps = [app for app in view.apps if any(resource.key.group_kind == NOTEBOOK_JOB for resource in app.resources)]
    if (
        not apps
        or settings.is_delivered_by_argosy
        or NOTEBOOK_JOB in settings.kinds_with_check
        or NOTEBOOK_KEY in settings.missing_keys
    ):
        return
    if not settings.has_configmap:
        text = f"{_NO_HEALTH_SHOWN}: ConfigMap argocd-cm does not exist in {settings.namespace}"
    elif settings.data is None:
        return  # no permission to read it
    else:
        text = f"{_NO_HEALTH_SHOWN}: argocd-cm has no key {NOTEBOOK_KEY}"
        misspelt_keys = [
            key for key in settings.data if "notebookvalidationjob" in key.lower() and key.startswith("resource.")
        ]
        if misspelt_keys:
            text = f"{_NO_HEALTH_SHOWN}: the key {misspelt_keys[0]} is not spelled {NOTEBOOK_KEY}"
    fix = (
        "install the check: argosy health apply --kinds NotebookValidationJob; if nothing is shown after a minute:"
        f" kubectl logs -n {settings.namespace} -l app.kubernetes.io/name=argocd-server,"
        f" kubectl rollout restart deployment argocd-server -n {settings.namespace}"
    )
    yield Violation(FileLocation(f"Application/{apps[0].name}"), text, fix, "ConfigMap/argocd-cm")


# -- waves that do not wait -------------------------------------------------------------------------------------------


def _find_waves_that_do_not_wait(view: LiveView) -> Iterator[Violation]:
    settings = view.settings
    if settings.is_delivered_by_argosy or settings.data is None or NOTEBOOK_JOB in settings.kinds_with_check:
        return
    for app in view.apps:
        jobs = [resource for resource in app.resources if resource.key.group_kind == NOTEBOOK_JOB and not resource.hook]
        later_resources = [
            resource for resource in app.resources if jobs and resource.wave > min(job.wave for job in jobs)
        ]
        if later_resources:
            job = min(jobs, key=lambda resource: resource.wave)
            namespace = job.key.namespace or app.app.destination.namespace
            next_resource = min(
                (resource for resource in later_resources if resource.wave > job.wave),
                key=lambda resource: resource.wave,
            )
            text = (
                f"wave {next_resource.wave} ({next_resource.name}) does not wait for {job.name} in wave "
                f"{job.wave}: without a health"
                " check a sync waits only until the object is created, not until its notebook has run"
            )
            fix = (
                "install the check: argosy health apply --kinds NotebookValidationJob; or put a Job with hook: Sync"
                f" before it: argosy generate wait-for-notebook --name {job.key.name} --block-wave {next_resource.wave}"
                f" -n {namespace}"
            )
            yield app.build_violation(text, fix, subject=job.name)


# -- old failures --------------------------------------------------------------------------------------------------


def _find_old_failed_notebooks(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if app.health != "Degraded":
            continue
        phases = {
            resource: _get_phase(view, resource)
            for resource in app.resources
            if resource.key.group_kind == NOTEBOOK_JOB
        }
        failed = [resource for resource, phase in phases.items() if phase == "Failed"]
        if not failed or "Succeeded" not in phases.values():
            continue
        names = ", ".join(resource.key.name for resource in failed)
        namespace = failed[0].key.namespace or app.app.destination.namespace
        succeeded_count = sum(phase == "Succeeded" for phase in phases.values())
        automated = app.app.policy.automated
        has_self_heal = automated is not None and automated.is_on and automated.self_heal
        rerun_text = (
            "Argo CD recreates it automatically" if has_self_heal else f"then sync it: argosy app sync {app.name}"
        )
        text = f"Degraded because notebook jobs Failed: {names}; {succeeded_count} Succeeded"
        fix = (
            f"fix the notebook (argosy notebook logs {failed[0].key.name}); remove the job from Git if it is"
            f" old; or run it again: kubectl delete notebookvalidationjob {failed[0].key.name} -n {namespace};"
            f" {rerun_text}"
        )
        yield app.build_violation(text, fix, subject=failed[0].name)


def _get_phase(view: LiveView, resource: LiveResource) -> str:
    return str(as_mapping((view.by_key.get(resource.key) or {}).get("status")).get("phase") or "")


RULES: Final = (
    build_live_rule(
        "AGY512",
        Severity.WARNING,
        "Ready, but not shown as Healthy",
        "The Application stays Progressing, or shows no health, although everything works: later waves wait forever.",
        "The object's own status says that it is ready or has succeeded, and nothing else of the Application is"
        " unhealthy. The missing link is searched in order: entry of the ArgoCD resource, key of argocd-cm, refresh.",
        "Install the health check; if it is installed, hard-refresh the Application, then the browser.",
        _find_wrong_health,
    ),
    build_live_rule(
        "AGY513",
        Severity.WARNING,
        "A wave does not wait for a notebook",
        "The notebook's result is used before it exists.",
        "No health check for the kind is in argocd-cm, and Argo CD has no built-in one: then an object counts as done"
        " once it is created. With the check, Argo CD waits for Succeeded and fails the sync on Failed.",
        "Install the health check, or generate a Job that waits, as a Sync hook: a PreSync hook would wait forever.",
        _find_waves_that_do_not_wait,
    ),
    build_live_rule(
        "AGY514",
        Severity.WARNING,
        "Old notebook jobs keep an Application Degraded",
        "The Application stays Degraded although the notebooks that matter succeeded.",
        "The jobs that the Application manages were read: some have Failed, others Succeeded.",
        "Fix the notebook, remove the job from Git, or delete it so that it runs again. Argo CD recreates it only with"
        " automated sync and selfHeal; else sync manually.",
        _find_old_failed_notebooks,
    ),
)
