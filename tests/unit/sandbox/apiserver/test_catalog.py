"""What the catalog makes of definitions that change."""

from __future__ import annotations

from typing import Any

from argosy.kube.names import GroupKind
from argosy.sandbox.apiserver.resource_catalog import Catalog
from support.api_client import definition, version

WIDGET = GroupKind("argosy.dev", "Widget")


def stored(crd: dict[str, Any], revision: int, **metadata: Any) -> dict[str, Any]:
    return {**crd, "metadata": {**crd["metadata"], "resourceVersion": str(revision), **metadata}}


def test_a_changed_status_or_label_leaves_discovery_as_it_is() -> None:
    catalog = Catalog()
    catalog.define(stored(definition(), 1))
    before, served = catalog.version, catalog.of_kind(WIDGET)
    catalog.define({**stored(definition(), 2, labels={"team": "ml"}), "status": {"storedVersions": ["v1"]}})
    assert catalog.version == before
    assert catalog.of_kind(WIDGET) is served


def test_a_changed_version_is_served() -> None:
    catalog = Catalog()
    catalog.define(stored(definition(version("v1")), 1))
    catalog.define(stored(definition(version("v1"), version("v2", storage=False)), 2))
    assert catalog.versions_of(WIDGET) == ["v2", "v1"]


def test_a_definition_that_comes_again_is_served_again() -> None:
    catalog = Catalog()
    catalog.define(stored(definition(), 1))
    catalog.forget("widgets.argosy.dev")
    assert catalog.of_kind(WIDGET) is None
    catalog.define(stored(definition(), 2))
    assert catalog.of_kind(WIDGET) is not None


def test_a_definition_that_is_being_deleted_is_known_as_such_though_its_spec_is_the_same() -> None:
    catalog = Catalog()
    catalog.define(stored(definition(), 1))
    served = catalog.of_kind(WIDGET)
    assert served is not None and not catalog.is_terminating(served)
    catalog.define(stored(definition(), 2, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert catalog.is_terminating(served)
