"""What the body of a sync becomes."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import PolicyError, UserError
from argosy.features.applications.sync.requested_operation import build_sync_operation
from argosy.gitops.application import Application, read_application
from argosy.web.api.body_fields import BodyReader, check_same_name


def app(**spec: Any) -> Application:
    resources = [
        {"group": "apps", "kind": "Deployment", "namespace": "ml", "name": resource_name}
        for resource_name in ("a", "b")
    ]
    return read_application(
        {
            "metadata": {"name": "models", "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://git.example/r", "path": "p"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
                **spec,
            },
            "status": {"resources": resources},
        }
    )


def build_operation(body: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return build_sync_operation(app(**spec), BodyReader(body), "ann")


def test_an_empty_body_is_a_sync_with_hooks_by_whoever_asked():
    assert build_operation({}) == {"sync": {"syncStrategy": {"hook": {}}}, "initiatedBy": {"username": "ann"}}


def test_everything_that_argo_cd_takes_is_taken():
    operation = build_operation(
        {
            "revision": "v2", "prune": True, "dryRun": True, "strategy": {"apply": {"force": True}},
            "resources": [{"group": "apps", "kind": "Deployment", "name": "a", "namespace": "ml"}],
            "syncOptions": {"items": ["Replace=true"]}, "infos": [{"name": "why", "value": "because"}],
            "retryStrategy": {"limit": "3", "backoff": {"duration": "5s", "factor": 2}},
        }
    )  # fmt: skip
    assert operation == {
        "sync": {
            "revision": "v2", "prune": True, "dryRun": True, "syncStrategy": {"apply": {"force": True}},
            "resources": [{"group": "apps", "namespace": "ml", "kind": "Deployment", "name": "a"}],
            "syncOptions": ["Replace=true"],
        },
        "initiatedBy": {"username": "ann"},
        "info": [{"name": "why", "value": "because"}],
        "retry": {"limit": 3, "backoff": {"duration": "5s", "factor": 2}},
    }  # fmt: skip


def test_options_of_the_request_replace_those_of_the_application():
    policy = {"syncOptions": ["CreateNamespace=true"]}
    assert build_operation({}, syncPolicy=policy)["sync"]["syncOptions"] == ["CreateNamespace=true"]
    assert build_operation({"syncOptions": {"items": []}}, syncPolicy=policy)["sync"]["syncOptions"] == []


def test_an_excluded_object_leaves_all_others():
    operation = build_operation({"resources": [{"group": "apps", "kind": "Deployment", "name": "a", "exclude": True}]})
    assert [resource["name"] for resource in operation["sync"]["resources"]] == ["b"]


@pytest.mark.parametrize(
    "body",
    [
        {"revision": 7}, {"prune": "yes"}, {"resources": {}}, {"resources": ["a"]}, {"resources": [{"kind": "Pod"}]},
        {"strategy": []}, {"infos": [{"name": []}]}, {"syncOptions": ["a=b"]}, {"retryStrategy": {"limit": []}},
        {"revisions": ["a", "b"]}, {"revisions": ["a"], "sourcePositions": [7]}, {"manifests": ["{}"]},
        {"syncOptions": {"items": [1]}}, {"retryStrategy": {"limit": 1 << 60}}, {"dryRun": 1},
    ],
)  # fmt: skip
def test_what_is_of_another_kind_is_refused_and_named(body):
    with pytest.raises(UserError):
        build_operation(body)


def test_another_revision_of_what_syncs_by_itself_is_refused():
    with pytest.raises(PolicyError, match="auto-sync"):
        build_operation({"revision": "v2"}, syncPolicy={"automated": {}})


def test_a_body_may_not_name_another_than_the_address():
    check_same_name("models", "")
    check_same_name("models", "models")
    with pytest.raises(UserError, match="the URL names 'models', but the body names 'other'"):
        check_same_name("models", "other")
