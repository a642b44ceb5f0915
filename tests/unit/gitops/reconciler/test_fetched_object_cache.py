"""The cache of fetched objects keeps them as long as comparisons need them."""

from __future__ import annotations

from functools import partial

import pytest

from argosy.gitops.reconciler.fetched_object_cache import FetchCache, ObjectFetch
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

pytestmark = pytest.mark.anyio
APP = ResourceKey("argoproj.io", "Application", "argocd", "models")
A, B = ResourceKey("", "ConfigMap", "ml", "a"), ResourceKey("", "ConfigMap", "ml", "b")


async def test_object_is_fetched_once_per_version_and_kept_while_needed() -> None:
    answers, calls = FetchCache(), list[str]()

    async def ask(name: str) -> Manifest | None:
        calls.append(name)
        return {"metadata": {"name": name}} if name != "none" else None

    one, other = ObjectFetch(A, 1, partial(ask, "a")), ObjectFetch(B, 1, partial(ask, "b"))
    first = await answers.fetch_all(APP, [one, other])
    again = await answers.fetch_all(APP, [one, other])
    assert calls == ["a", "b"] and again[A] is first[A]
    assert (await answers.fetch_all(APP, [one._replace(version=2), other]))[A] is not first[A] and calls == [
        "a",
        "b",
        "a",
    ]
    await answers.fetch_all(APP, [other])
    assert answers.count() == 1
    assert not await answers.fetch_all(APP, [ObjectFetch(A, 3, partial(ask, "none"))]) and answers.count() == 0
    await answers.fetch_all(APP, [one])
    answers.forget(APP)
    assert answers.count() == 0
