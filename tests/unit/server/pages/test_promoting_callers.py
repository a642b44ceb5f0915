"""As whom a promotion by the page is written down, and what a change of the cluster means to the page."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.server.asked import Asked, Query
from argosy.server.identity.caller import Caller
from argosy.server.looking.environments import Known, concerns
from argosy.server.pages.environments import _by
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


def test_only_applications_of_environments_concern_the_page() -> None:
    page = asked(Caller("ann", how="cookie"))
    app = {"kind": "Application", "metadata": {"name": "web-dev"}}
    other = {"kind": "Application", "metadata": {"name": "other"}}
    assert concerns(page, None, other)  # as long as nobody has looked
    page.site.part(Known).applications = frozenset({"web-dev"})
    assert concerns(page, app, None) and not concerns(page, None, other)
