"""The sync operation built from the body of a sync request."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import PolicyError, UserError
from argosy.features.applications.sync.operation_of_sync_request import build_sync_operation
from argosy.gitops.application import Application, read_application
from argosy.web.api.body_fields import BodyReader, check_same_name

SOURCE = {"repoURL": "https://git.example/r", "path": "p"}


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
                "source": SOURCE,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
                **spec,
            },
            "status": {"resources": resources},
        }
    )


def build_operation(body: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return build_sync_operation(app(**spec), BodyReader(body), "ann")


def test_empty_body_builds_a_hook_sync_initiated_by_the_caller():
    sync = {"syncStrategy": {"hook": {}}, "source": SOURCE}
    assert build_operation({}) == {"sync": sync, "initiatedBy": {"username": "ann"}}


def test_all_argo_cd_sync_fields_are_accepted():
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
            "syncOptions": ["Replace=true"], "source": SOURCE,
        },
        "initiatedBy": {"username": "ann"},
        "info": [{"name": "why", "value": "because"}],
        "retry": {"limit": 3, "backoff": {"duration": "5s", "factor": 2}},
    }  # fmt: skip


def test_request_sync_options_replace_those_of_the_application():
    policy = {"syncOptions": ["CreateNamespace=true"]}
    assert build_operation({}, syncPolicy=policy)["sync"]["syncOptions"] == ["CreateNamespace=true"]
    assert build_operation({"syncOptions": {"items": []}}, syncPolicy=policy)["sync"]["syncOptions"] == []


def test_excluded_resource_syncs_all_others():
    operation = build_operation({"resources": [{"group": "apps", "kind": "Deployment", "name": "a", "exclude": True}]})
    assert [resource["name"] for resource in operation["sync"]["resources"]] == ["b"]


@pytest.mark.parametrize(
    "body",
    [
        {"revision": 7}, {"prune": "yes"}, {"resources": {}}, {"resources": ["a"]}, {"resources": [{"kind": "Pod"}]},
        {"strategy": []}, {"infos": [{"name": []}]}, {"syncOptions": ["a=b"]}, {"retryStrategy": {"limit": []}},
        {"revisions": ["a", "b"]}, {"revisions": ["a"], "sourcePositions": [7]}, {"manifests": [{}]},
        {"syncOptions": {"items": [1]}}, {"retryStrategy": {"limit": 1 << 60}}, {"dryRun": 1},
    ],
)  # fmt: skip
def test_invalid_sync_fields_are_rejected(body):
    with pytest.raises(UserError):
        build_operation(body)


def test_explicit_revision_is_rejected_with_auto_sync():
    with pytest.raises(PolicyError, match="auto-sync"):
        build_operation({"revision": "v2"}, syncPolicy={"automated": {}})


def test_body_name_must_match_the_url():
    check_same_name("models", "")
    check_same_name("models", "models")
    with pytest.raises(UserError, match="the URL names 'models', but the body names 'other'"):
        check_same_name("models", "other")
