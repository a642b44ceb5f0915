"""Plan of an uninstall: the objects to delete.

In: live objects. Out: a plan of deletions. Never: does I/O; deletes delivered resources unless requested; deletes a CRD
that an Argo CD or a remaining object needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.annotations import ENGINE, SKIP_RECONCILE
from argosy.features.install.live_state import UninstallState
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import InstallPlan, InstallStep, build_label_step, list_other_install_namespaces
from argosy.features.setup.delivery.cluster_setup_plan import ChangeVerb
from argosy.gitops.application.argosy_component_labels import is_part_of_argosy, was_labelled_by_install
from argosy.gitops.application.finalizer_names import RESOURCE_FINALIZERS, is_controller_finalizer
from argosy.gitops.policy.application_delivery_engine_detection import ARGOSY
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, CRD, NAMESPACE, SECRET

MAX_NAMED_APPLICATIONS: Final = 5
NAMESPACE_DELETED_NOTE: Final = (
    "namespace {place} is deleted with everything in it: projects, settings, accounts, repository and cluster Secrets;"
    " argosy admin export --secrets --all-settings -n {place} saves them"
)


def build_uninstall_plan(
    options: InstallOptions, state: UninstallState, *, with_applications: bool, is_forced: bool
) -> InstallPlan:
    deleted_apps = (
        [manifest for manifest in state.applications if state.is_delivered_by_argosy(manifest)]
        if with_applications
        else []
    )
    kept_apps = [manifest for manifest in state.applications if manifest not in deleted_apps]
    steps = [_build_deletion(manifest) for manifest in deleted_apps]
    deleted_namespace = _find_deleted_namespace(options, state, kept_apps, with_applications=with_applications)
    notes = [NAMESPACE_DELETED_NOTE.format(place=deleted_namespace)] if deleted_namespace else []
    # Reverse of the install order: workloads are deleted before their permissions.
    for key, live in reversed(list(state.live.live.items())):
        if not is_part_of_argosy(live):
            notes.append(_render_foreign_note(key, deleted_namespace))
            if with_applications and key.group_kind == NAMESPACE and was_labelled_by_install(live):
                steps.append(build_label_step(live, is_control=False))
        elif reason := _find_reason_to_keep(key, options, state, kept_apps, with_applications=with_applications):
            notes.append(f"{key.kind} {key.name} stays: {reason}")
        else:
            steps.append(_build_deletion(live))
    steps += [_build_deletion(manifest) for manifest in state.leases]
    if state.budgets is not None and is_part_of_argosy(state.budgets):
        steps.append(_build_deletion(state.budgets))
    steps.sort(key=lambda step: step.key.group_kind in (CRD, NAMESPACE))
    if kept_apps:
        notes.append(f"Applications that stay, with their resources: {len(kept_apps)}")
    problems = list(_list_problems(options, state, deleted_apps))
    orphaned = list(_describe_orphaned_apps(options, state, kept_apps, with_applications=with_applications))
    if is_forced:
        notes += [problem for problem, _ in orphaned]
    elif not steps:  # already uninstalled, so nothing gets worse
        notes += [f"{problem}; {advice}" for problem, advice in orphaned]
    else:
        problems += [f"{problem}; {advice}" for problem, advice in orphaned]
    return InstallPlan(tuple(steps), tuple(notes), tuple(problems))


def lacks_resources_finalizer(app: Manifest) -> bool:
    return not RESOURCE_FINALIZERS & set(app["metadata"].get("finalizers") or ())


def _find_reason_to_keep(
    key: ResourceKey,
    options: InstallOptions,
    state: UninstallState,
    kept_apps: Sequence[Manifest],
    *,
    with_applications: bool,
) -> str:
    """Return why an object is kept; empty if it is deleted."""
    if key.group_kind in (SECRET, CONFIG_MAP) and not with_applications:
        return "it contains login data"
    if key.group_kind not in (CRD, NAMESPACE):
        return ""
    if not with_applications:
        return "it contains Applications and settings" if key.group_kind == NAMESPACE else "Applications need it"
    if key.group_kind == NAMESPACE:
        return "it contains Applications" if any(_is_in_namespace(manifest, key.name) for manifest in kept_apps) else ""
    if state.has_argocd:
        return "an Argo CD needs it"
    projects = [manifest for manifest in state.projects if not _is_in_namespace(manifest, options.namespace)]
    others = kept_apps if key.name.startswith("applications.") else projects
    return f"{_render_app_names(others)} would be deleted with it" if others else ""


def _find_deleted_namespace(
    options: InstallOptions, state: UninstallState, kept_apps: Sequence[Manifest], *, with_applications: bool
) -> str:
    """Return the namespace that is deleted with everything in it; empty if none is."""
    key = ResourceKey(*NAMESPACE, "", options.namespace)
    live = state.live.live.get(key)
    if live is None or not is_part_of_argosy(live):
        return ""
    return "" if _find_reason_to_keep(key, options, state, kept_apps, with_applications=with_applications) else key.name


def _render_foreign_note(key: ResourceKey, deleted_namespace: str) -> str:
    if deleted_namespace and key.namespace == deleted_namespace:
        return (
            f"{key.kind} {key.name} is deleted with namespace {deleted_namespace}, although argosy install did "
            "not create it"
        )
    return f"{key.kind} {key.name} stays: argosy install did not create it"


def _read_annotation(manifest: Manifest, annotation: str) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(annotation) or "")


def _is_in_namespace(manifest: Manifest, namespace: str) -> bool:
    return bool(manifest["metadata"].get("namespace") == namespace)


def _list_problems(options: InstallOptions, state: UninstallState, deleted_apps: Sequence[Manifest]) -> Iterator[str]:
    # Its ClusterRoles have the same names and would be deleted.
    for other_namespace in list_other_install_namespaces(options, state.live):
        yield (
            f"argosy is installed in namespace {other_namespace}; uninstall it there: argosy uninstall "
            f"--namespace {other_namespace}"
        )
    if deleted_apps and not state.has_running_controller:
        yield (
            f"no argosy controller runs that could delete the resources of {_render_app_names(deleted_apps)}; "
            f"{_render_deletion_advice(options, deleted_apps)}, then run this again"
        )


def _render_deletion_advice(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    """Describe how to delete Applications while no controller runs."""
    return (
        f"start one (argosy controller --namespace {options.namespace}), or "
        f"{_render_non_cascading_advice(options, apps)}"
    )


def _render_non_cascading_advice(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    name = "NAME…"
    if len(apps) == 1:
        name = (
            str(apps[0]["metadata"]["name"])
            if _is_in_namespace(apps[0], options.namespace)
            else _render_app_names(apps)
        )
    return f"delete them and keep their resources: argosy app delete {name} --cascade=false"


def _describe_orphaned_apps(
    options: InstallOptions, state: UninstallState, kept_apps: Sequence[Manifest], *, with_applications: bool
) -> Iterator[tuple[str, str]]:
    """Yield each group of Applications that would be orphaned, and the advice; --force accepts it."""
    argocd_apps = [app for app in kept_apps if state.is_reconciled_by_argocd(app)]
    if adopted := [
        app
        for app in argocd_apps
        if _read_annotation(app, ENGINE) == ARGOSY and _read_annotation(app, SKIP_RECONCILE) == "true"
    ]:
        yield (
            f"{_render_app_names(adopted)} would not be delivered any more: {SKIP_RECONCILE} makes Argo CD skip them",
            "return them first with argosy app hand-back, or use --force to accept that",
        )
    other_apps = [app for app in kept_apps if not state.is_reconciled_by_argocd(app)]
    apps_with_finalizers = [
        app for app in other_apps if any(map(is_controller_finalizer, app["metadata"].get("finalizers") or ()))
    ]
    if delivered_apps := [app for app in apps_with_finalizers if state.is_delivered_by_argosy(app)]:
        advice = (
            "delete them first, or use --applications"
            if state.has_running_controller
            else _render_deletion_advice(options, delivered_apps)
        )
        yield (
            f"{_render_app_names(delivered_apps)} could not be deleted any more: no controller would handle "
            "their finalizers",
            f"{advice}, or use --force to accept that",
        )
    if undelivered_apps := [
        app
        for app in (other_apps if with_applications else apps_with_finalizers)
        if not state.is_delivered_by_argosy(app)
    ]:
        yield (
            f"{_render_app_names(undelivered_apps)} would stay: argosy does not deliver them, so it cannot "
            "delete their resources",
            f"remove {SKIP_RECONCILE} and {ENGINE} from them first, or "
            f"{_render_non_cascading_advice(options, undelivered_apps)}, "
            "or use --force to accept that",
        )


def _render_app_names(apps: Sequence[Manifest]) -> str:
    names = [f"{app['metadata']['namespace']}/{app['metadata']['name']}" for app in apps[:MAX_NAMED_APPLICATIONS]]
    more_text = f" and {len(apps) - MAX_NAMED_APPLICATIONS} more" if len(apps) > MAX_NAMED_APPLICATIONS else ""
    return f"{', '.join(names)}{more_text}"


def _build_deletion(live: Manifest) -> InstallStep:
    return InstallStep(ChangeVerb.DELETE, key_of(live), live, (), str(live["metadata"].get("uid", "")))
