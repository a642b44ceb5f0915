"""The Ansible role's merge of health checks gives the same result as `argosy health apply`."""

from __future__ import annotations

import copy
import importlib.util
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.features.health_checks.argocd_install.merge import RequestedHealthCheck, list_missing_checks, merge_entries
from argosy.kube.patch import json_patch
from argosy.kube.resource_key import GroupKind
from support import proof_scale
from support.ansible_playbooks import DEPLOY


def _filters() -> ModuleType:
    file = DEPLOY / "filter_plugins" / "argocd_health_checks.py"
    spec = importlib.util.spec_from_file_location("argocd_health_checks_of_the_role", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROLE = _filters()
EXAMPLES = settings(max_examples=100 if proof_scale.is_full() else 25)
SCRIPTS = st.sampled_from(["return {}\n", "return {status = 'Healthy'}", ""])
KINDS = st.tuples(st.sampled_from(["", "example.com", "serving.kserve.io"]), st.sampled_from(["Claim", "Model"]))
CHECKS = st.dictionaries(KINDS, SCRIPTS, min_size=1).map(
    lambda scripts: [{"group": group, "kind": kind, "check": script} for (group, kind), script in scripts.items()]
)
ENTRIES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["Claim", "Model", "Theirs"]), "check": SCRIPTS},
            optional={"group": st.sampled_from(["", "example.com", "serving.kserve.io"]), "note": st.just("x")},
        ),
        st.just({"check": "an entry without a kind"}),
    )
)


def as_checks(checks: list[dict[str, str]]) -> list[RequestedHealthCheck]:
    return [RequestedHealthCheck(GroupKind(check["group"], check["kind"]), check["check"]) for check in checks]


def resource(entries: Any) -> dict[str, Any]:
    spec = {"server": {}} if entries is None else {"server": {}, "resourceHealthChecks": entries}
    return {"kind": "ArgoCD", "metadata": {"resourceVersion": "7"}, "spec": spec}


@EXAMPLES
@given(ENTRIES, CHECKS)
def test_role_merges_entries_like_argosy_health_apply(entries: list[Any], checks: list[dict[str, str]]) -> None:
    before = copy.deepcopy(entries)
    assert ROLE.merged(entries, checks) == merge_entries(entries, as_checks(checks))
    assert entries == before


@EXAMPLES
@given(st.none() | ENTRIES, CHECKS)
def test_patch_produces_the_merged_list_and_is_empty_afterwards(entries: Any, checks: list[dict[str, str]]) -> None:
    live = resource(entries)
    patch = ROLE.patch(live, checks)
    if not patch:
        assert merge_entries(entries or [], as_checks(checks)) == (entries or [])
        return
    patched = json_patch.apply(live, patch["content"])
    assert patched["spec"]["resourceHealthChecks"] == merge_entries(entries or [], as_checks(checks))
    assert patched["spec"]["server"] == {}
    assert ROLE.patch(patched, checks) == {}


@EXAMPLES
@given(st.dictionaries(KINDS, SCRIPTS), CHECKS)
def test_patch_of_argocd_cm_writes_the_missing_checks(there: Any, checks: list[dict[str, str]]) -> None:
    data = {RequestedHealthCheck(GroupKind(*kind), script).key: script for kind, script in there.items()}
    patch = ROLE.patch({"kind": "ConfigMap", "data": data}, checks)
    expected = {check.key: check.script for check in list_missing_checks(data, as_checks(checks))}
    assert (patch["content"]["data"] if patch else {}) == expected


def test_argocd_resource_without_spec_gets_one() -> None:
    live = {"kind": "ArgoCD", "metadata": {"resourceVersion": "7"}}
    checks = [{"kind": "Claim", "check": "return {}"}]
    patched = json_patch.apply(live, ROLE.patch(live, checks)["content"])
    assert patched["spec"] == {"resourceHealthChecks": [{"group": "", "kind": "Claim", "check": "return {}"}]}


@pytest.mark.parametrize("changed_entries", [[{"kind": "Theirs", "check": "1"}], []])
def test_patch_fails_if_the_list_was_changed_since_the_read(changed_entries: list[Any]) -> None:
    checks = [{"group": "", "kind": "Claim", "check": "return {}"}]
    patch = ROLE.patch(resource([{"kind": "Other", "check": "0"}]), checks)
    with pytest.raises(Exception, match="test"):
        json_patch.apply(resource(changed_entries), patch["content"])
