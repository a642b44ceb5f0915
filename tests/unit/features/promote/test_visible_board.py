"""Actor of a promotion on the page, and which cluster changes affect the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.features.promote import visible_board
from argosy.features.promote.page import _build_actor
from argosy.features.promote.visible_board import EnvironmentBoards
from argosy.kube.objects import Manifest
from argosy.web.auth.caller import Caller
from argosy.web.request import RequestContext
from support.page_site import a_request, a_site


@pytest.fixture
def boards() -> EnvironmentBoards:
    return EnvironmentBoards()


def build_request(caller: Caller, **options: Any) -> RequestContext:
    return a_request(a_site(**options), "POST", "/environments/production/approve", caller=caller)


def test_actor_is_the_signed_in_user_and_not_the_server_user() -> None:
    by = _build_actor(build_request(Caller("ann", ("leads",), "cookie", kind="person")))
    assert str(by) == "ann (page; groups: leads)" and by.authentication_note == "signed in to the page"


@pytest.mark.parametrize(
    ("caller", "is_simulated", "owns"),
    [
        (Caller("admin", credential_kind="cookie", kind="account"), True, True),
        (Caller("admin", credential_kind="cookie", kind="account"), False, False),
        (Caller("admin", credential_kind="cookie", kind="person"), True, False),
        (Caller("admin", credential_kind="bearer", kind="project"), True, False),
        (Caller("ann", credential_kind="cookie", kind="account"), True, False),
    ],
)
def test_only_the_admin_account_of_a_demo_is_in_system_masters(caller: Caller, is_simulated: bool, owns: bool) -> None:
    assert _build_actor(build_request(caller, is_simulated=is_simulated)).is_member_of(["system:masters"]) is owns


def application(name: str, path: str = ".", **status: Any) -> Manifest:
    return {"kind": "Application", "metadata": {"name": name}, "spec": {"source": {"path": path}}, "status": status}


def test_only_applications_of_environments_affect_the_page(boards: EnvironmentBoards) -> None:
    page = build_request(Caller("ann", credential_kind="cookie"))
    app, other = application("web-dev"), application("other")
    assert boards.may_affect_environments(page, None, other)  # nothing is remembered before the first page view
    boards.applications.remember(page, {"web-dev"})
    assert boards.may_affect_environments(page, app, None) and not boards.may_affect_environments(page, None, other)


def test_remembered_applications_are_kept_per_caller(boards: EnvironmentBoards) -> None:
    ann = build_request(Caller("ann", credential_kind="cookie"))
    bob = replace(ann, caller=Caller("bob", credential_kind="cookie"))
    remembered_apps = boards.applications
    remembered_apps.remember(ann, {"web-dev"})
    assert boards.may_affect_environments(bob, None, application("api-dev"))  # bob has not viewed the page yet
    remembered_apps.remember(bob, {"api-dev"})
    assert boards.may_affect_environments(ann, None, application("web-dev")) and not boards.may_affect_environments(
        ann, None, application("api-dev")
    )
    assert boards.may_affect_environments(bob, None, application("api-dev")) and not boards.may_affect_environments(
        bob, None, application("web-dev")
    )


def test_without_environments_only_a_new_source_or_revision_affects_the_page(boards: EnvironmentBoards) -> None:
    page = build_request(Caller("ann", credential_kind="cookie"))
    boards.applications.remember(page, set())
    before, job = application("web-dev"), {"kind": "NotebookValidationJob", "metadata": {"name": "train"}}
    assert not boards.may_affect_environments(page, before, application("web-dev", sync={"status": "OutOfSync"}))
    assert not boards.may_affect_environments(page, None, job)
    assert boards.may_affect_environments(page, before, application("web-dev", path="dev"))
    assert boards.may_affect_environments(page, before, application("web-dev", sync={"revision": "a" * 40}))
    assert boards.may_affect_environments(page, None, before) and boards.may_affect_environments(page, before, None)


def test_number_of_remembered_callers_is_limited(monkeypatch: pytest.MonkeyPatch, boards: EnvironmentBoards) -> None:
    monkeypatch.setattr(visible_board, "MAX_REMEMBERED", 1)
    ann = build_request(Caller("ann", credential_kind="cookie"))
    bob = replace(ann, caller=Caller("bob", credential_kind="cookie"))
    remembered_apps = boards.applications
    remembered_apps.remember(ann, {"web-dev"})
    remembered_apps.remember(bob, {"web-dev"})
    assert remembered_apps.find(ann) is None and remembered_apps.find(bob) == {"web-dev"}
