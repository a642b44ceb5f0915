"""Which Applications an ApplicationSet makes, where Git alone says so."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.lost_generated_applications import find_lost_applications, generate_names
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.gitops.analysis.violation import FileLocation
from argosy.kube.objects import Manifest, key_of

FOLDERS = frozenset({"teams", "teams/blue", "teams/blue/a", "teams/red", "teams/.hidden", "other/red"})


def made(*generators: Any, name: str = "team-{{name}}", **spec: Any) -> ManifestWithLocations:
    about = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "teams"}}
    whole: Manifest = {**about, "spec": {"generators": [*generators], "template": {"metadata": {"name": name}}, **spec}}
    return ManifestWithLocations(whole, key_of(whole), lambda pointer: FileLocation("teams.yaml", 1))


def listed(*names: str) -> dict[str, Any]:
    return {"list": {"elements": [{"name": name} for name in names]}}


def folders(*paths: str, **more: Any) -> dict[str, Any]:
    return {"git": {"repoURL": "https://git.example.com/a", "directories": [{"path": path} for path in paths], **more}}


@pytest.mark.parametrize(
    ("item", "names"),
    [
        (made(listed("blue", "red")), {"team-blue", "team-red"}),
        (made(listed("blue"), name="{{ .name }}-app"), {"blue-app"}),
        (made(folders("teams/*"), name="{{path.basename}}"), {"blue", "red"}),
        (made(folders("teams/*", "other/*"), name="{{.path.basename}}"), {"blue", "red"}),
        (made(listed("blue"), name="{{other}}"), None),
        (made(listed("blue"), name="{{ .name | upper }}"), None),
        (made({"clusters": {}}), None),
        (made(listed("blue"), {"clusters": {}}), None),
        (made(folders("teams/**"), name="{{path.basename}}"), None),
        (made(folders("teams/*", pathParamPrefix="x"), name="{{path.basename}}"), None),
        (made({"list": {"elements": [{"name": "a"}], "elementsYaml": "[]"}}), None),
        (made({"list": {"elements": None}}), None),
        (made("broken"), None),
        (made(), None),
    ],
)
def test_names_are_known_where_git_alone_gives_them(item: ManifestWithLocations, names: set[str] | None) -> None:
    assert generate_names(item, FOLDERS) == names


def test_an_excluded_folder_makes_no_application() -> None:
    generator = {"git": {"directories": [{"path": "teams/*"}, {"path": "teams/red", "exclude": True}]}}
    assert generate_names(made(generator, name="{{path.basename}}"), FOLDERS) == {"blue"}


def test_only_what_is_made_no_more_is_lost_and_policies_are_minded() -> None:
    before = [(made(listed("blue", "red")), FOLDERS)]
    found = find_lost_applications(before, [(made(listed("blue", "green")), FOLDERS)])
    assert [(each.names, each.deletes_objects) for each in found] == [(("team-red",), True)]
    kept = made(listed("blue"), syncPolicy={"preserveResourcesOnDeletion": True})
    assert [each.deletes_objects for each in find_lost_applications(before, [(kept, FOLDERS)])] == [False]
    assert (
        find_lost_applications(
            before, [(made(listed("blue"), syncPolicy={"applicationsSync": "create-only"}), FOLDERS)]
        )
        == []
    )
    assert find_lost_applications(before, []) == []
