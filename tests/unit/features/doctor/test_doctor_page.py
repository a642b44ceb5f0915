"""Doctor page: commands in advice, and the name pattern."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.doctor.examination_of_visible_applications import limit_to_visible
from argosy.features.doctor.page import drop_commands, list_commands
from argosy.features.doctor.service import DoctorOptions
from argosy.kube.objects import Manifest
from argosy.web.auth.caller import Caller
from argosy.web.request import RequestContext
from support.page_site import CONTROL, KnownPeople, a_request, a_site, anything


@pytest.mark.parametrize(
    ("text", "commands", "words"),
    [
        ("look at the changes, then: argosy app diff a; argosy app sync a", ["argosy app diff a", "argosy app sync a"],
         "look at the changes, then"),
        ("correct it (argosy notebook logs a); or: kubectl delete nvj a -n b; Argo CD makes it again",
         ["kubectl delete nvj a -n b"], "correct it (argosy notebook logs a); or; Argo CD makes it again"),
        ("wait", [], "wait"),
        ("git pull", ["git pull"], ""),
        ("", [], ""),
    ],
)  # fmt: skip
def test_commands_are_separated_from_text_in_advice(text: str, commands: list[str], words: str) -> None:
    assert (list_commands(text), drop_commands(text)) == (commands, words)


def asking() -> RequestContext:
    names = ("fraud-training", "fraud-serving", "iris", "a" * 60)
    site = a_site([app(name) for name in names], KnownPeople({"ann": anything}))
    return a_request(site, "GET", "/doctor", caller=Caller("ann", credential_kind="bearer"))


def app(name: str) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL, "uid": name, "resourceVersion": "1"}, "spec": {},
    }  # fmt: skip


def test_pattern_matches_parts_of_application_names() -> None:
    options = limit_to_visible(asking(), DoctorOptions(pattern="serving|iris"))
    assert (set(options.names), options.pattern) == ({f"{CONTROL}/fraud-serving", f"{CONTROL}/iris"}, "")
    assert limit_to_visible(asking(), DoctorOptions()).names == ()


def test_pattern_is_never_run_as_a_regular_expression() -> None:
    with pytest.raises(UserError, match="no Application has"):
        limit_to_visible(asking(), DoctorOptions(pattern="([a-z-]+)+!"))
    with pytest.raises(UserError, match="longer than 64"):
        limit_to_visible(asking(), DoctorOptions(pattern="a" * 65))
