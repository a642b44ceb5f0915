"""Add the reason of a delayed sync (sync window, project budget) to the WHY of a row.

In: a row, the cluster view. Out: the row, possibly with another WHY. Never: reads an Application that waits for
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.annotations import REFRESH
from argosy.errors import UserError
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.app_row import AppRow
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.delay_reasons import describe_delay
from argosy.gitops.cluster_view.cluster_view import ClusterView


def add_delay_reason(cluster_view: ClusterView, row: AppRow) -> AppRow:
    """Return the row with the delay of its Application before the differences."""
    if row.sync == "Synced" and not row.is_busy and REFRESH not in row.annotations:
        return row
    try:
        app = cluster_view.find_application(row.namespace, row.name)
    except UserError:
        return row  # the row already shows the error
    if app is None:
        return row
    delay = describe_delay(app, cluster_view.rules, cluster_view.cache.get, cluster_view.engines, utc_now())
    if not delay:
        return row
    return replace(row, why=status_summary.describe_problem(app, row.why if row.sync == "OutOfSync" else "", delay))
