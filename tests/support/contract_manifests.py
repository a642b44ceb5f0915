"""Minimal manifests for the contract tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from support.deadlines import HANG_SECONDS

T = TypeVar("T")
WAIT = HANG_SECONDS


def config(namespace: str, name: str = "a", data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": data if data is not None else {"x": "1"},
    }


def event(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"kind": "ConfigMap", "namespace": namespace, "name": "a"},
        "reason": "Test",
        "message": "something happened",
        "type": "Normal",
    }


def pod(namespace: str, name: str = "p", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    }


def deployment(namespace: str, name: str = "d", replicas: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
            },
        },
    }


def owned_by(owner: dict[str, Any], **flags: bool) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **flags,
        }
    ]


def definition(group: str) -> dict[str, Any]:
    """A CRD of kind Widget with a status subresource, in its own group."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "colour": {"type": "string", "default": "blue"},
                },
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def eventually(question: Callable[[], Awaitable[T | None]], *, within: float = WAIT) -> T:
    """Poll until the result is neither None nor False."""
    until = time.monotonic() + within
    while True:
        answer = await question()
        if answer is not None and answer is not False:
            return answer
        assert time.monotonic() < until, f"not so within {within:g} s"
        await asyncio.sleep(0.05)
