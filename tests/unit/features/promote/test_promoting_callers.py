"""As whom a promotion by the page is written down, and what a change of the cluster means to the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.features.promote import visible_board
from argosy.features.promote.page import _by
from argosy.features.promote.visible_board import EnvironmentApplications, concerns
from argosy.kube.objects import Manifest
from argosy.web.auth.caller import Caller
from argosy.web.request import Asked, Query
from support.page_site import a_site


def asked(caller: Caller, **options: Any) -> Asked:
    return Asked("POST", "/environments/production/approve", {}, Query([]), {}, caller, a_site(**options))


def test_who_is_signed_in_did_it_and_not_who_runs_the_server() -> None:
    by = _by(asked(Caller("ann", ("leads",), "cookie", kind="person")))
    assert str(by) == "ann (page; groups: leads)" and by.said_by == "signed in to the page"


@pytest.mark.parametrize(
    ("caller", "is_simulated", "owns"),
    [
        (Caller("admin", how="cookie", kind="account"), True, True),
        (Caller("admin", how="cookie", kind="account"), False, False),
        (Caller("admin", how="cookie", kind="person"), True, False),
        (Caller("admin", how="bearer", kind="project"), True, False),
        (Caller("ann", how="cookie", kind="account"), True, False),
    ],
)
def test_only_the_admin_of_a_demo_is_its_owner(caller: Caller, is_simulated: bool, owns: bool) -> None:
    assert _by(asked(caller, is_simulated=is_simulated)).has(["system:masters"]) is owns


def application(name: str, path: str = ".", **status: Any) -> Manifest:
    return {"kind": "Application", "metadata": {"name": name}, "spec": {"source": {"path": path}}, "status": status}


def test_only_applications_of_environments_concern_the_page() -> None:
    page = asked(Caller("ann", how="cookie"))
    app, other = application("web-dev"), application("other")
    assert concerns(page, None, other)  # as long as nobody has looked
    page.site.part(EnvironmentApplications).remember(page, {"web-dev"})
    assert concerns(page, app, None) and not concerns(page, None, other)


def test_what_one_caller_sees_says_nothing_of_what_concerns_another() -> None:
    ann = asked(Caller("ann", how="cookie"))
    bob = replace(ann, caller=Caller("bob", how="cookie"))
    known = ann.site.part(EnvironmentApplications)
    known.remember(ann, {"web-dev"})
    assert concerns(bob, None, application("api-dev"))  # bob has not looked yet
    known.remember(bob, {"api-dev"})
    assert concerns(ann, None, application("web-dev")) and not concerns(ann, None, application("api-dev"))
    assert concerns(bob, None, application("api-dev")) and not concerns(bob, None, application("web-dev"))


def test_where_there_are_no_environments_only_another_source_or_commit_may_bring_some() -> None:
    page = asked(Caller("ann", how="cookie"))
    page.site.part(EnvironmentApplications).remember(page, set())
    before, job = application("web-dev"), {"kind": "NotebookValidationJob", "metadata": {"name": "train"}}
    assert not concerns(page, before, application("web-dev", sync={"status": "OutOfSync"}))
    assert not concerns(page, None, job)
    assert concerns(page, before, application("web-dev", path="dev"))
    assert concerns(page, before, application("web-dev", sync={"revision": "a" * 40}))
    assert concerns(page, None, before) and concerns(page, before, None)


def test_callers_that_are_remembered_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_board, "MAX_REMEMBERED", 1)
    ann = asked(Caller("ann", how="cookie"))
    bob = replace(ann, caller=Caller("bob", how="cookie"))
    known = ann.site.part(EnvironmentApplications)
    known.remember(ann, {"web-dev"})
    known.remember(bob, {"web-dev"})
    assert known.find(ann) is None and known.find(bob) == {"web-dev"}
