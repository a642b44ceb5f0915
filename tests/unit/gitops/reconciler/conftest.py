"""Fixtures of controller tests, which use the embedded cluster."""

from __future__ import annotations

import pytest

from argosy.kube.client import Cluster


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    created = await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "control-"}})
    return str(created["metadata"]["name"])
