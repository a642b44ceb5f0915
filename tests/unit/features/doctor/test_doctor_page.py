"""What of an advice can be typed, and what is words."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.doctor.page import commands_of, words_of
from argosy.features.doctor.service import Wanted
from argosy.features.doctor.visible_report import permitted
from argosy.kube.objects import Manifest
from argosy.web.auth.caller import Caller
from argosy.web.request import Asked, Query
from support.page_site import CONTROL, KnownPeople, a_site, anything


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
def test_commands_are_told_from_words(text: str, commands: list[str], words: str) -> None:
    assert (commands_of(text), words_of(text)) == (commands, words)


def asking() -> Asked:
    names = ("fraud-training", "fraud-serving", "iris", "a" * 60)
    site = a_site([app(name) for name in names], KnownPeople({"ann": anything}))
    return Asked("GET", "/doctor", {}, Query([]), {}, Caller("ann", how="bearer"), site)


def app(name: str) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL, "uid": name, "resourceVersion": "1"}, "spec": {},
    }  # fmt: skip


def test_names_are_matched_by_their_parts() -> None:
    found = permitted(asking(), Wanted(pattern="serving|iris"))
    assert (set(found.names), found.pattern) == ({f"{CONTROL}/fraud-serving", f"{CONTROL}/iris"}, "")
    assert permitted(asking(), Wanted()).names == ()


def test_an_expression_that_backtracks_is_never_run() -> None:
    with pytest.raises(UserError, match="no Application has"):
        permitted(asking(), Wanted(pattern="([a-z-]+)+!"))
    with pytest.raises(UserError, match="longer than 64"):
        permitted(asking(), Wanted(pattern="a" * 65))
