"""Which service account a sync impersonates."""

from __future__ import annotations

import pytest

from argosy.errors import PolicyError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.impersonation import ImpersonationPolicy, find_impersonation_fault, read_impersonation

HERE = parse_cluster_address("https://kubernetes.default.svc")
ON = ImpersonationPolicy(is_enabled=True)


def project(*entries: tuple[str, str, str]) -> Project:
    accounts = [
        {"server": server, "namespace": namespace, "defaultServiceAccount": account}
        for server, namespace, account in entries
    ]
    return read_project({"metadata": {"name": "ml"}, "spec": {"destinationServiceAccounts": accounts}})


def application(namespace: str = "prod") -> Application:
    destination = {"server": f"{HERE}/", "namespace": namespace}
    return read_application(
        {"metadata": {"name": "models", "namespace": "argocd"}, "spec": {"destination": destination}}
    )


@pytest.mark.parametrize(
    ("entries", "namespace", "user"),
    [
        ([(HERE, "prod", "deployer")], "prod", "system:serviceaccount:prod:deployer"),
        ([("*", "*", "deployer")], "prod", "system:serviceaccount:prod:deployer"),
        ([(f"{HERE}:443/", "prod", "deployer")], "prod", "system:serviceaccount:prod:deployer"),
        ([(HERE, "prod", "ops:deployer")], "prod", "system:serviceaccount:ops:deployer"),
        ([(HERE, "*", "deployer")], "", "system:serviceaccount:argocd:deployer"),
        ([(HERE, "dev", "a"), (HERE, "p*", "b"), ("*", "*", "c")], "prod", "system:serviceaccount:prod:b"),
    ],
)  # fmt: skip
def test_first_matching_entry_selects_the_service_account(
    entries: list[tuple[str, str, str]], namespace: str, user: str
) -> None:
    assert ON.find_user(project(*entries), application(namespace), HERE) == user


@pytest.mark.parametrize("text", [None, "", "  ", "false", "False", " FALSE "])
def test_no_user_is_impersonated_if_the_setting_is_missing_or_false(text: str | None) -> None:
    data = {} if text is None else {"application.sync.impersonation.enabled": text}
    assert find_impersonation_fault(data) == ""
    assert read_impersonation(data).find_user(project(), application(), HERE) == ""


@pytest.mark.parametrize("text", ["True", " true", "TRUE\n", "yes", "1", "fasle", "on"])
def test_invalid_value_enables_impersonation_and_is_reported(text: str) -> None:
    data = {"application.sync.impersonation.enabled": text}
    assert read_impersonation(data).is_enabled
    with pytest.raises(PolicyError, match="no matching service account found"):
        read_impersonation(data).find_user(project(), application(), HERE)
    assert find_impersonation_fault(data).startswith(f"application.sync.impersonation.enabled: {text!r} ")


@pytest.mark.parametrize(("text", "is_enforced"), [("", True), ("false", False), (" FALSE ", False), ("no", True)])
def test_service_account_is_enforced_unless_the_setting_is_false(text: str, is_enforced: bool) -> None:
    data = {"application.sync.impersonation.enforced": text}
    assert read_impersonation(data).is_enforced is is_enforced


def test_sync_without_matching_service_account_is_refused_if_enforced() -> None:
    data = {"application.sync.impersonation.enabled": "true"}
    elsewhere = project(("https://other", "*", "deployer"), (HERE, "dev", "deployer"))
    with pytest.raises(PolicyError, match=f"no matching service account found for destination server {HERE} and "):
        read_impersonation(data).find_user(elsewhere, application(), HERE)
    lenient = read_impersonation({**data, "application.sync.impersonation.enforced": "false"})
    assert lenient.find_user(elsewhere, application(), HERE) == ""


@pytest.mark.parametrize("account", ["", " ", "dep*", "a/b", "{a,b}"])
def test_invalid_service_account_name_is_refused_even_if_not_enforced(account: str) -> None:
    with pytest.raises(PolicyError, match="failed to derive service account to impersonate: default service account"):
        ImpersonationPolicy(is_enabled=True, is_enforced=False).find_user(
            project((HERE, "*", account)), application(), HERE
        )


@pytest.mark.parametrize("entry", [("https://[", "*", "deployer"), (HERE, "[", "deployer")])
def test_invalid_glob_is_refused_even_if_not_enforced(entry: tuple[str, str, str]) -> None:
    with pytest.raises(PolicyError, match="failed to derive service account to impersonate"):
        ImpersonationPolicy(is_enabled=True, is_enforced=False).find_user(project(entry), application(), HERE)
