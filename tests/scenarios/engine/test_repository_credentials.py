"""A repository that requires a password: the condition on the Application, and the Secret that resolves it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from argosy.kube.resource_key import ResourceKey
from support.engine import CONTROL, Room, config_map
from support.git_server import git_host

pytestmark = pytest.mark.anyio
PASSWORD = "hunter22-very-secret"


async def test_repository_is_read_once_a_repository_secret_is_created(room: Room, tmp_path: Path) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    with git_host(tmp_path) as host:
        host.wanted = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        url = f"{host.url}/repository/.git"
        await room.configure({"source.protocols": "https, ssh, http"}, "argosy-cm")
        source = {"repoURL": url, "path": "app", "targetRevision": "main"}
        await room.deliver(source=source, syncPolicy={"automated": {}})
        message = await room.until_condition("ComparisonError")
        assert url in message and "credentials" in message
        app = await room.app()
        assert app["status"]["sync"]["status"] == "Unknown"
        metadata = {"name": "models", "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "repository"}}
        credentials = {"type": "git", "url": url, "username": "me", "password": PASSWORD}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": credentials}
        await room.cluster.create(secret)
        app = await room.until_synced()
        assert "conditions" not in app["status"] and PASSWORD not in str(app)
        assert await room.cluster.get(ResourceKey("", "ConfigMap", "ml", "settings")) is not None
