"""Add the reason of a delayed sync (sync window, project budget) to the WHY of a row.

In: a row, the cluster view. Out: the row, possibly with another WHY. Never: reads an Application that waits for
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.annotations import REFRESH
from argosy.errors import UserError
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.app_row import AppRow
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.delays import describe_delay
from argosy.gitops.cluster_view.cluster_view import Lookout


def add_delay(lookout: Lookout, row: AppRow) -> AppRow:
    """Return the row with the delay of its Application before the differences."""
    if row.sync == "Synced" and not row.is_busy and REFRESH not in row.annotations:
        return row
    try:
        app = lookout.application(row.namespace, row.name)
    except UserError:
        return row  # the row already shows the error
    if app is None:
        return row
    delay = describe_delay(app, lookout.rules, lookout.cache.get, lookout.engines, clock())
    if not delay:
        return row
    return replace(row, why=summary.why(app, row.why if row.sync == "OutOfSync" else "", delay))
