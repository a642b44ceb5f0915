"""Names of the Applications that an ApplicationSet generates, if they follow from Git alone."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.lost_generated_applications import find_lost_applications, generate_names
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.kube.objects import Manifest, key_of

FOLDERS = frozenset({"teams", "teams/blue", "teams/blue/a", "teams/red", "teams/.hidden", "other/red"})


def build_application_set(*generators: Any, name: str = "team-{{name}}", **spec: Any) -> ManifestWithLocations:
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
        (build_application_set(listed("blue", "red")), {"team-blue", "team-red"}),
        (build_application_set(listed("blue"), name="{{ .name }}-app"), {"blue-app"}),
        (build_application_set(folders("teams/*"), name="{{path.basename}}"), {"blue", "red"}),
        (build_application_set(folders("teams/*", "other/*"), name="{{.path.basename}}"), {"blue", "red"}),
        (build_application_set(listed("blue"), name="{{other}}"), None),
        (build_application_set(listed("blue"), name="{{ .name | upper }}"), None),
        (build_application_set({"clusters": {}}), None),
        (build_application_set(listed("blue"), {"clusters": {}}), None),
        (build_application_set(folders("teams/**"), name="{{path.basename}}"), None),
        (build_application_set(folders("teams/*", pathParamPrefix="x"), name="{{path.basename}}"), None),
        (build_application_set({"list": {"elements": [{"name": "a"}], "elementsYaml": "[]"}}), None),
        (build_application_set({"list": {"elements": None}}), None),
        (build_application_set("broken"), None),
        (build_application_set(), None),
    ],
)
def test_names_are_known_only_if_git_determines_them(item: ManifestWithLocations, names: set[str] | None) -> None:
    assert generate_names(item, FOLDERS) == names


def test_excluded_folder_generates_no_application() -> None:
    generator = {"git": {"directories": [{"path": "teams/*"}, {"path": "teams/red", "exclude": True}]}}
    assert generate_names(build_application_set(generator, name="{{path.basename}}"), FOLDERS) == {"blue"}


def test_lost_applications_are_found_and_deletion_policies_are_respected() -> None:
    before = [(build_application_set(listed("blue", "red")), FOLDERS)]
    lost_applications = find_lost_applications(before, [(build_application_set(listed("blue", "green")), FOLDERS)])
    assert [(lost.names, lost.deletes_objects) for lost in lost_applications] == [(("team-red",), True)]
    preserving_set = build_application_set(listed("blue"), syncPolicy={"preserveResourcesOnDeletion": True})
    assert [lost.deletes_objects for lost in find_lost_applications(before, [(preserving_set, FOLDERS)])] == [False]
    assert (
        find_lost_applications(
            before, [(build_application_set(listed("blue"), syncPolicy={"applicationsSync": "create-only"}), FOLDERS)]
        )
        == []
    )
    assert find_lost_applications(before, []) == []
