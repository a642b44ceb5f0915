"""The sync panel: what was ticked becomes a wish; what was not, does not."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.applications.sync.panel import list_resource_groups, list_sync_options, read_sync_form
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.sync_operation_builder import sync_operation
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


def test_an_empty_form_is_a_plain_sync() -> None:
    operation = sync_operation(app(), read_sync_form(app(), form()), "ann")
    assert operation["sync"] == {"syncStrategy": {"hook": {}}}


def test_all_resources_are_the_same_as_none() -> None:
    every = [("resource", f":ConfigMap:ml/{name}") for name in ("one", "two")]
    assert read_sync_form(app(), form(*every)).resources == ()
    assert read_sync_form(app(), form(every[0])).resources == (":ConfigMap:ml/one",)


def test_resources_that_it_has_not_are_refused() -> None:
    with pytest.raises(UserError, match="select again"):
        read_sync_form(app(), form(("resource", ":Secret:ml/other")))


def test_replace_needs_its_word() -> None:
    with pytest.raises(UserError, match="type the word replace"):
        read_sync_form(app(), form(("replace", "true")))
    assert read_sync_form(app(), form(("replace", "true"), ("sure", "Replace"))).replace


def test_an_option_of_the_application_that_is_unticked_is_taken_back() -> None:
    wish = read_sync_form(app(("CreateNamespace=true",)), form())
    assert wish.options == ("CreateNamespace=false",)
    sync_form = read_sync_form(
        app(("CreateNamespace=true",)), form(("option", "CreateNamespace"), ("option", "PruneLast"))
    )
    assert sync_form.options == ("PruneLast=true",)


def test_skipping_validation_is_the_option_turned_off() -> None:
    assert read_sync_form(app(), form(("option", "Validate"))).options == ("Validate=false",)
    assert [option.is_on for option in list_sync_options(app(("Validate=false",))) if option.name == "Validate"] == [
        True
    ]


def test_another_revision_is_asked_for_and_its_own_is_not() -> None:
    assert read_sync_form(app(), QueryParameters([("revision", "v2")])).revision == "v2"
    assert read_sync_form(app(), form()).revision == ""


def test_retries_count_only_where_they_are_ticked() -> None:
    assert read_sync_form(app(), form(("retry_limit", "5"))).retry_limit is None
    assert read_sync_form(app(), form(("retry", "true"), ("retry_limit", "5"))).retry_limit == 5
    with pytest.raises(UserError, match="invalid number"):
        read_sync_form(app(), form(("retry", "true"), ("retry_limit", "five")))


def test_groups_of_resources_have_three_states() -> None:
    assert [group.state for group in list_resource_groups(app())] == ["all"]
    assert [group.state for group in list_resource_groups(app(), [":ConfigMap:ml/one"])] == ["some"]
