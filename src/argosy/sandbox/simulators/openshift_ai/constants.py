"""Kinds of OpenShift AI and of what belongs to it, and who writes them.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.names import GroupKind

DATA_SCIENCE_CLUSTER: Final = GroupKind("datasciencecluster.opendatahub.io", "DataScienceCluster")
GATEWAY: Final = GroupKind("networking.istio.io", "Gateway")
DOCLING_SERVE: Final = GroupKind("docling.io", "DoclingServe")

OPERATOR: Final = "opendatahub-operator"  # owns the fields of what it keeps as it wants it
DOCLING_OPERATOR: Final = "docling-operator"
