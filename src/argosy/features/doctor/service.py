"""Examines the installation, its Applications and related live objects.

In: an ApplicationService and options. Out: Examination. Never: writes; exceeds the time limit: Applications that were
not compared in time are reported from their status.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ClusterError, Forbidden, UserError
from argosy.features.doctor.application_check import (
    ExaminedApplication,
    examine_application,
    get_priority,
    is_settled,
    read_status,
)
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.installation_checks import CheckState, InstallationCheck, run_installation_checks
from argosy.features.doctor.installation_state import (
    InstallationState,
    fetch_health_check_errors,
    list_setting_violations,
    read_installation,
)
from argosy.features.doctor.live_objects_of_applications import (
    add_objects_of_unlisted_kinds,
    list_models,
    list_objects,
    list_repository_secrets,
)
from argosy.features.doctor.proven_remedies import ProvenRemedy, find_remedy
from argosy.features.doctor.time_limited_application_work import WorkLimit, interleave_by_project, run_within_limit
from argosy.gitops.analysis.current_wave_gate import WaveWait, find_wave_wait
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import LiveApplication, LiveView
from argosy.gitops.analysis.rules import diagnose_installation
from argosy.gitops.analysis.rules.ineffective_project_denials import SHALLOW_DENIAL_RULE, find_ineffective_live_denials
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.application_client.delay_reasons import load_exceeded_budgets
from argosy.gitops.coexistence.argocd_settings_location import DEFAULT_NAMESPACE, OPENSHIFT_GITOPS
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

DEFAULT_TIMEOUT_SECONDS: Final = 9.0  # for all comparisons and proofs together
MAX_COMPARISON_SHARE: Final = 0.6  # of the time limit
MIN_PROOF_SECONDS: Final = 2.0  # even if comparisons used up the time


@dataclass(frozen=True)
class DoctorOptions:
    names: tuple[str, ...] = ()
    pattern: str = ""  # regular expression for names
    compares_all: bool = False  # also compare healthy Applications
    is_namespaced: bool = False  # only Applications in the service's namespace
    is_quick: bool = False  # use statuses only: compare nothing, and probe no model
    seconds: float = DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Examination:
    target: str
    checks: tuple[InstallationCheck, ...]
    view: LiveView
    chosen: tuple[LiveApplication, ...]
    findings: tuple[Finding, ...]
    waits: tuple[WaveWait, ...] = ()
    treatments: Mapping[str, ProvenRemedy] = field(default_factory=dict)  # by Application
    settings: InstallationState | None = None

    @property
    def is_installation_broken(self) -> bool:
        """True if the installation itself does not work."""
        return any(check.mark is CheckState.BAD for check in self.checks)

    @property
    def has_no_applications(self) -> bool:
        """True if no Application could be read."""
        return any(check.name == "applications" and check.mark is not CheckState.OK for check in self.checks)


async def find_readable_namespace(service: ApplicationService) -> ApplicationService:
    """Find a namespace in which the user may read Applications, if they may not list them cluster-wide."""
    for namespace in dict.fromkeys((service.control_namespace, OPENSHIFT_GITOPS, DEFAULT_NAMESPACE)):
        try:
            await _list_in_namespace(service, namespace)
        except ClusterError as error:
            if error.code != 403:
                return service
        else:
            return (
                service
                if namespace == service.control_namespace
                else ApplicationService(service.cluster, service.cluster_name, namespace, namespace)
            )
    return service


async def examine_installation(
    service: ApplicationService, reader: ApplicationReader, options: DoctorOptions
) -> Examination:
    reads, now = OptionalReads(service.cluster), utc_now()
    (apps, check), settings = await asyncio.gather(
        _list_applications(service, reads, options), read_installation(reads, service.control_namespace)
    )
    titles = build_titles(apps)
    chosen = {titles[app.key]: app for app in _select_applications(apps, options)}
    end = time.monotonic() + options.seconds
    examined = {} if options.is_quick else await _compare_applications(reader, chosen, reads, options)
    live = tuple(
        examined[name].live if (name := titles[app.key]) in examined else read_status(app, name) for app in apps
    )
    heads, objects, secrets = await asyncio.gather(
        run_installation_checks(reads, settings.view, now, apps),
        list_objects(reads, live, chosen),
        list_repository_secrets(reads, service.control_namespace),
    )
    for item in examined.values():
        add_objects_of_unlisted_kinds(objects, item.objects.values())
    models = await list_models(service, objects, probes_models=not options.is_quick)
    settings_view = settings.view
    if not settings_view.is_delivered_by_argosy and any(
        item.health == "Progressing" for item in live if item.name in examined
    ):
        settings_view = replace(settings_view, errors=await fetch_health_check_errors(reads, settings_view.namespace))
    projects, clusters = reader.reconciler_settings.projects, reader.reconciler_settings.clusters
    unreadable = list_setting_violations(
        reader.reconciler_settings.faults, settings.violations, service.control_namespace
    )
    violations = {**settings.violations, SHALLOW_DENIAL_RULE: find_ineffective_live_denials(projects, live)}
    unread = frozenset(reads.unread)
    view = LiveView(
        now,
        live,
        objects,
        unread,
        settings_view,
        secrets,
        models,
        violations,
        projects,
        clusters,
        unreadable_settings=unreadable,
        budget_uses=load_exceeded_budgets(reader.control_cache.get, service.control_namespace, now),
    )
    selected_live = tuple(item for item in live if item.name in chosen)
    waits = tuple(wait for item in selected_live if (wait := find_wave_wait(item, view)))
    compared = [item for item in selected_live if item.name in examined]
    limit = WorkLimit(max(end - time.monotonic(), MIN_PROOF_SECONDS), options.seconds)
    treatments = await _find_remedies(reader, apps, compared, examined, reads, limit)
    findings = tuple(
        item for item in diagnose_installation(view) if _is_selected(item, chosen, has_names=bool(options.names))
    )
    view = replace(view, notes=tuple(reads.notes))
    return Examination(
        service.cluster_name, (*heads, check), view, selected_live, findings, waits, treatments, settings
    )


async def _compare_applications(
    reader: ApplicationReader, chosen: Mapping[str, Application], reads: OptionalReads, options: DoctorOptions
) -> dict[str, ExaminedApplication]:
    """Compare the Applications that need it, the most urgent first, within their share of the time limit."""
    to_compare = {name: app for name, app in chosen.items() if options.compares_all or _needs_comparison(app)}
    first = interleave_by_project(
        sorted(to_compare.items(), key=lambda item: get_priority(item[1])), lambda item: item[1].project
    )
    tasks = {name: examine_application(reader, app, reads, name) for name, app in first}
    limit = WorkLimit(options.seconds * MAX_COMPARISON_SHARE, options.seconds)
    return await run_within_limit(tasks, limit, "compared", reads, {name: app.project for name, app in first})


def _is_selected(finding: Finding, names: Collection[str], *, has_names: bool) -> bool:
    kind, _, name = finding.location.file.partition("/")
    return name in names if kind == "Application" else not has_names


# -- Applications -----------------------------------------------------------------------------------------------------


def build_titles(apps: Iterable[Application]) -> dict[ResourceKey, str]:
    """Return display names: the name, with the namespace if two Applications share a name."""
    keys = [app.key for app in apps]
    count = Counter(key.name for key in keys)
    return {key: key.name if count[key.name] == 1 else f"{key.namespace}/{key.name}" for key in keys}


async def _list_applications(
    service: ApplicationService, reads: OptionalReads, options: DoctorOptions
) -> tuple[list[Application], InstallationCheck]:
    """List readable Applications: cluster-wide, else in the usual namespaces, else the given ones."""
    for namespace in (service.namespace,) if options.is_namespaced else ("", *_list_namespaces_to_try(service)):
        try:
            applications = (
                await service.list_applications(all_namespaces=True)
                if not namespace
                else await _list_in_namespace(service, namespace)
            )
        except Forbidden:
            continue
        applications = [
            app
            for app in applications
            if app.status.get("controllerNamespace", service.control_namespace) == service.control_namespace
        ]
        return applications, InstallationCheck(
            "applications", CheckState.OK, f"{len(applications)} application{'s'[: len(applications) != 1]} readable"
        )
    if options.names:
        return [await service.load_application(name) for name in options.names], InstallationCheck(
            "applications", CheckState.OK, f"{len(options.names)} named, others may not be listed"
        )
    reads.add_note(
        f"you may not list Applications in {service.control_namespace}: ask for get and list of "
        "applications.argoproj.io"
    )
    return [], InstallationCheck("applications", CheckState.UNKNOWN, "Applications cannot be read")


def _list_namespaces_to_try(service: ApplicationService) -> list[str]:
    return list(dict.fromkeys((service.namespace, service.control_namespace, OPENSHIFT_GITOPS, DEFAULT_NAMESPACE)))


async def _list_in_namespace(service: ApplicationService, namespace: str) -> list[Application]:
    listing = await service.cluster.list(APPLICATION, namespace=namespace)
    return [read_application(manifest, f"Application {manifest['metadata']['name']}") for manifest in listing.items]


def _select_applications(apps: Sequence[Application], options: DoctorOptions) -> list[Application]:
    if options.pattern:
        try:
            pattern = re.compile(options.pattern)
        except re.error as error:
            raise UserError(f"invalid pattern {options.pattern!r}: {error}; example: 'stage0|stage1'") from error
        return [app for app in apps if pattern.search(app.name)]
    if not options.names:
        return list(apps)
    by_name = {key: app for app in apps for key in (app.name, f"{app.namespace}/{app.name}")}
    missing = [name for name in options.names if name not in by_name]
    if missing:
        raise UserError(f"Application {missing[0]!r} not found; list them: argosy app list")
    return list({by_name[name].key: by_name[name] for name in options.names}.values())


async def _find_remedies(
    reader: ApplicationReader,
    apps: Sequence[Application],
    selected: Sequence[LiveApplication],
    examined: Mapping[str, ExaminedApplication],
    reads: OptionalReads,
    limit: WorkLimit,
) -> dict[str, ProvenRemedy]:
    """Find and prove remedies for Applications that are not settled."""
    unsettled = [
        live_app
        for live_app in selected
        if not is_settled(live_app) and (examined[live_app.name].app_state or live_app.render_failure)
    ]
    first = interleave_by_project(
        sorted(unsettled, key=lambda live_app: get_priority(live_app.app)), lambda live_app: live_app.app.project
    )
    tasks = {
        live_app.name: find_remedy(reader, live_app.app, examined[live_app.name].app_state, apps) for live_app in first
    }
    return await run_within_limit(
        tasks, limit, "proven", reads, {live_app.name: live_app.app.project for live_app in first}
    )


def _needs_comparison(app: Application) -> bool:
    """True if the Application is not settled, or creates other Applications."""
    live_app = read_status(app)
    return not is_settled(live_app) or any(row.key.kind == "Application" for row in live_app.resources)
