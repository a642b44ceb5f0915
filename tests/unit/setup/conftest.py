"""What the tests of installing share."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from argosy.setup.installing import manifests


@pytest.fixture(autouse=True)
def _quick_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions are copied some hundred times here; by way of JSON that is many times as fast."""

    def copied(definition: dict[str, Any]) -> Any:
        return orjson.loads(orjson.dumps(definition))

    monkeypatch.setattr(manifests, "deepcopy", copied, raising=False)
