"""The memos of Applications: found, created and dropped in one place."""

from __future__ import annotations

from argosy.gitops.reconciler.app_memo import AppMemos, OwnershipMemo, OwnershipMemos, SourceMemo
from argosy.kube.resource_key import ResourceKey

APP = ResourceKey("argoproj.io", "Application", "argocd", "models")


def test_reading_creates_no_memo() -> None:
    memos = AppMemos()
    assert memos.find(APP) is None and list(memos) == []
    assert memos[APP] is memos[APP] is memos.find(APP)


def test_memo_of_a_forgotten_application_is_empty() -> None:
    memos = AppMemos()
    memos[APP].owned_since = 1.0
    memos[APP].sources[0] = SourceMemo()
    memos.forget(APP)
    memos.forget(APP)
    assert list(memos) == [] and memos[APP].owned_since is None and not memos[APP].sources


def test_connection_keeps_its_part_until_another_one_is_used() -> None:
    memos, here, elsewhere = AppMemos(), object(), object()
    first = memos[APP].get_connection(here)
    first.future_start = ("2026-01-01T00:00:00Z", 1.0)
    assert memos[APP].get_connection(here) is first
    assert memos[APP].get_connection(elsewhere).future_start is None
    assert memos[APP].get_connection(here) is not first


def test_only_the_ended_connection_is_dropped() -> None:
    memos, here, elsewhere = AppMemos(), object(), object()
    other = ResourceKey("argoproj.io", "Application", "argocd", "other")
    ended, kept = memos[APP].get_connection(elsewhere), memos[other].get_connection(here)
    memos.drop_connection(elsewhere)
    assert memos[APP].get_connection(elsewhere) is not ended and memos[other].get_connection(here) is kept


def test_sources_that_the_application_no_longer_has_are_dropped() -> None:
    memo = AppMemos()[APP]
    kept = SourceMemo()
    memo.sources.update({0: kept, 1: SourceMemo(), 2: SourceMemo()})
    memo.drop_sources_from(1)
    assert memo.sources == {0: kept}


def test_only_what_was_seen_of_an_ownership_is_kept() -> None:
    memos, other = OwnershipMemos(), APP._replace(name="other")
    memos[APP] = OwnershipMemo(fence="1/one", is_owned=True)
    memos[other] = OwnershipMemo(warning="delivered by argosy and Argo CD")
    assert memos.list_owned() == {APP} and memos[other].warning
    memos[other] = OwnershipMemo()
    memos.forget(APP)
    assert memos.list_owned() == set() and memos[APP] == OwnershipMemo() == memos[other]
