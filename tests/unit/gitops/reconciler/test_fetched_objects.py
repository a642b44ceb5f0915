"""Fetched objects are kept as long as comparisons need them."""

from __future__ import annotations

from functools import partial

import pytest

from argosy.gitops.reconciler.fetched_objects import FetchedObjects, ObjectFetch
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

pytestmark = pytest.mark.anyio
A, B = ResourceKey("", "ConfigMap", "ml", "a"), ResourceKey("", "ConfigMap", "ml", "b")


async def test_object_is_fetched_once_per_version_and_kept_while_needed() -> None:
    answers, calls = FetchedObjects(), list[str]()

    async def ask(name: str) -> Manifest | None:
        calls.append(name)
        return {"metadata": {"name": name}} if name != "none" else None

    one, other = ObjectFetch(A, 1, partial(ask, "a")), ObjectFetch(B, 1, partial(ask, "b"))
    first = await answers.fetch_all([one, other])
    again = await answers.fetch_all([one, other])
    assert calls == ["a", "b"] and again[A] is first[A]
    assert (await answers.fetch_all([one._replace(version=2), other]))[A] is not first[A] and calls == [
        "a",
        "b",
        "a",
    ]
    await answers.fetch_all([other])
    assert len(answers) == 1
    assert not await answers.fetch_all([ObjectFetch(A, 3, partial(ask, "none"))]) and len(answers) == 0
