"""Describes what Applications wait for, in one sentence for lists, screens, pages and the API.

In: Applications, and the settings in force. Out: texts, empty if an Application is not delayed. Never: asks a cluster
while no Application waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from argosy.errors import ArgosyError
from argosy.gitops.analysis.worker_budget_sync_window_delays import (
    find_delay,
    is_refresh_or_operation_due,
    is_sync_running_or_due,
)
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.coexistence.argocd_detection import UNKNOWN_ENGINES, detect_engines_or_unknown
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.projects_over_worker_budget_configmap import (
    BudgetUse,
    find_budget_use,
    read_worst_budget_uses,
)
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

GetManifest = Callable[[ResourceKey], Manifest | None]


def load_exceeded_budgets(get: GetManifest, control_namespace: str, now: datetime) -> dict[str, BudgetUse]:
    """Return the projects that are over their budgets, from a cache of the installation's ConfigMaps."""
    return read_worst_budget_uses(get(ResourceKey(*CONFIG_MAP, control_namespace, BUDGETS_CONFIG_MAP)), now)


def describe_delay(
    app: Application, settings: ReconcilerSettings, get: GetManifest, engines: DeliveryEngines, now: datetime
) -> str:
    """Say which sync window or budget an Application waits for, and what to do; empty if it waits for neither."""
    if not may_be_delayed(app):
        return ""
    budgets = get(ResourceKey(*CONFIG_MAP, settings.control_namespace, BUDGETS_CONFIG_MAP))
    use = find_budget_use(budgets, app.project, now)
    delay = find_delay(app, settings.projects.get(app.project), settings.clusters, use, engines, now)
    return "" if delay is None else str(delay)


async def describe_delays(service: ApplicationService, apps: Sequence[Application]) -> dict[ResourceKey, str]:
    """Describe the delays of many. Loads settings only if an Application may wait; unreadable ones are left out."""
    waiting = [app for app in apps if may_be_delayed(app)]
    if not waiting:
        return {}
    from argosy.gitops.application_client.app_state_reader import (
        open_reader,  # late: most lists need no settings
    )

    try:
        async with open_reader(service) as reader:
            now, get = utc_now(), reader.control_cache.get
            is_over_budget = bool(load_exceeded_budgets(get, reader.reconciler_settings.control_namespace, now))
            engines = (
                await detect_engines_or_unknown(service.cluster, service.control_namespace)
                if is_over_budget
                else UNKNOWN_ENGINES
            )
            delays = {app.key: describe_delay(app, reader.reconciler_settings, get, engines, now) for app in waiting}
    except ArgosyError:
        return {}
    return {key: delay for key, delay in delays.items() if delay}


def may_be_delayed(app: Application) -> bool:
    """False if no reconciliation or sync of the Application is due."""
    return not app.deletion_timestamp and (is_refresh_or_operation_due(app) or is_sync_running_or_due(app))
