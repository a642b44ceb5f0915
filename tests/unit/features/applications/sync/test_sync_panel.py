"""Sync panel: the submitted form becomes the options of a sync operation."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.applications.sync.panel import list_resource_groups, list_sync_options, read_sync_form
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.sync_operation_builder import build_operation_from_flags
from argosy.web.request import QueryParameters


def app(options: tuple[str, ...] = ()) -> Application:
    spec: dict[str, Any] = {
        "source": {"repoURL": "https://git.example.com/a.git", "path": ".", "targetRevision": "main"},
        "destination": {"namespace": "ml", "server": "https://kubernetes.default.svc"},
        "syncPolicy": {"syncOptions": list(options)},
    }
    resources = [
        {"kind": "ConfigMap", "namespace": "ml", "name": name, "status": "OutOfSync", "version": "v1"}
        for name in ("one", "two")
    ]
    metadata = {"name": "web", "namespace": "argocd"}
    return read_application({"metadata": metadata, "spec": spec, "status": {"resources": resources}})


def form(*pairs: tuple[str, str]) -> QueryParameters:
    return QueryParameters([("revision", "main"), ("propagation", "foreground"), *pairs])


def test_empty_form_is_a_sync_without_options() -> None:
    operation = build_operation_from_flags(app(), read_sync_form(app(), form()), "ann")
    assert operation["sync"].keys() == {"source", "syncStrategy"}
    assert operation["sync"]["syncStrategy"] == {"hook": {}}


def test_selecting_all_resources_equals_selecting_none() -> None:
    every = [("resource", f":ConfigMap:ml/{name}") for name in ("one", "two")]
    assert read_sync_form(app(), form(*every)).resources == ()
    assert read_sync_form(app(), form(every[0])).resources == (":ConfigMap:ml/one",)


def test_unknown_resource_is_rejected() -> None:
    with pytest.raises(UserError, match="select again"):
        read_sync_form(app(), form(("resource", ":Secret:ml/other")))


def test_replace_requires_typed_confirmation() -> None:
    with pytest.raises(UserError, match="type the word replace"):
        read_sync_form(app(), form(("replace", "true")))
    assert read_sync_form(app(), form(("replace", "true"), ("sure", "Replace"))).replace


def test_cleared_sync_option_of_the_application_is_set_to_false() -> None:
    wish = read_sync_form(app(("CreateNamespace=true",)), form())
    assert wish.options == ("CreateNamespace=false",)
    sync_form = read_sync_form(
        app(("CreateNamespace=true",)), form(("option", "CreateNamespace"), ("option", "PruneLast"))
    )
    assert sync_form.options == ("PruneLast=true",)


def test_skip_validation_checkbox_sets_validate_false() -> None:
    assert read_sync_form(app(), form(("option", "Validate"))).options == ("Validate=false",)
    assert [option.is_on for option in list_sync_options(app(("Validate=false",))) if option.name == "Validate"] == [
        True
    ]


def test_only_a_different_revision_is_sent() -> None:
    assert read_sync_form(app(), QueryParameters([("revision", "v2")])).revision == "v2"
    assert read_sync_form(app(), form()).revision == ""


def test_retry_limit_is_used_only_if_retry_is_selected() -> None:
    assert read_sync_form(app(), form(("retry_limit", "5"))).retry_limit is None
    assert read_sync_form(app(), form(("retry", "true"), ("retry_limit", "5"))).retry_limit == 5
    with pytest.raises(UserError, match="invalid number"):
        read_sync_form(app(), form(("retry", "true"), ("retry_limit", "five")))


def test_resource_group_is_selected_fully_or_partly() -> None:
    assert [group.state for group in list_resource_groups(app())] == ["all"]
    assert [group.state for group in list_resource_groups(app(), [":ConfigMap:ml/one"])] == ["some"]
