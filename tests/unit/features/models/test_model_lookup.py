"""Model lookup by name, and the errors if there is no match."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.errors import UserError
from argosy.features.models.service import ModelService
from argosy.kube.client import Cluster
from argosy.kube.resource_key import GroupKind

pytestmark = pytest.mark.anyio


class Listing:
    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = items


class Shelf:
    """A cluster client that can only list: one Application and one model."""

    async def list(self, kind: GroupKind, *, namespace: str = "", **_: Any) -> Listing:
        if kind.kind == "Application":
            coming = {"kind": "InferenceService", "namespace": "prod", "name": "prod-chat", "status": "OutOfSync"}
            return Listing([{"metadata": {"name": "production"}, "status": {"resources": [coming]}}])
        models = [{"metadata": {"name": "dev-chat", "namespace": "dev"}}]
        return Listing([model for model in models if namespace in ("", model["metadata"]["namespace"])])


@pytest.mark.parametrize(
    ("name", "namespace", "said"),
    [
        (
            "prod-chat",
            "",
            "model prod-chat does not exist yet; Application production has it in Git: argosy app sync production",
        ),
        ("prod-chat", "dev", "model prod-chat not found in namespace dev; did you mean dev-chat?"),
        ("dev-chat", "other", "model dev-chat not found in namespace other; list them: argosy model list"),
        ("dev-chatt", "", "model dev-chatt not found; did you mean dev-chat?"),
    ],
)
async def test_unknown_model_error_suggests_where_to_find_it(name: str, namespace: str, said: str) -> None:
    with pytest.raises(UserError) as raised:
        await ModelService(cast(Cluster, Shelf()), "here").get_model(name, namespace)
    assert str(raised.value) == said
