"""Kinds of OpenShift AI, and the field managers of its operators.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.resource_key import GroupKind

GATEWAY: Final = GroupKind("networking.istio.io", "Gateway")
DOCLING_SERVE: Final = GroupKind("docling.io", "DoclingServe")

OPERATOR_FIELD_MANAGER: Final = "opendatahub-operator"  # field manager of the objects it reconciles
DOCLING_FIELD_MANAGER: Final = "docling-operator"
