"""Resource catalog: changes when CRDs are added, changed or deleted."""

from __future__ import annotations

from typing import Any

from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.resource_catalog import ResourceCatalog
from support.api_client import definition, version

WIDGET = GroupKind("argosy.dev", "Widget")


def stored(crd: dict[str, Any], revision: int, **metadata: Any) -> dict[str, Any]:
    return {**crd, "metadata": {**crd["metadata"], "resourceVersion": str(revision), **metadata}}


def test_status_or_label_change_does_not_change_discovery() -> None:
    catalog = ResourceCatalog()
    catalog.add_definition(stored(definition(), 1))
    before, served = catalog.version, catalog.find_kind(WIDGET)
    catalog.add_definition({**stored(definition(), 2, labels={"team": "ml"}), "status": {"storedVersions": ["v1"]}})
    assert catalog.version == before
    assert catalog.find_kind(WIDGET) is served


def test_added_version_is_served() -> None:
    catalog = ResourceCatalog()
    catalog.add_definition(stored(definition(version("v1")), 1))
    catalog.add_definition(stored(definition(version("v1"), version("v2", storage=False)), 2))
    assert catalog.list_versions(WIDGET) == ["v2", "v1"]


def test_recreated_crd_is_served_again() -> None:
    catalog = ResourceCatalog()
    catalog.add_definition(stored(definition(), 1))
    catalog.remove_definition("widgets.argosy.dev")
    assert catalog.find_kind(WIDGET) is None
    catalog.add_definition(stored(definition(), 2))
    assert catalog.find_kind(WIDGET) is not None


def test_terminating_crd_is_detected_though_its_spec_is_unchanged() -> None:
    catalog = ResourceCatalog()
    catalog.add_definition(stored(definition(), 1))
    served = catalog.find_kind(WIDGET)
    assert served is not None and not catalog.is_terminating(served)
    catalog.add_definition(stored(definition(), 2, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert catalog.is_terminating(served)
