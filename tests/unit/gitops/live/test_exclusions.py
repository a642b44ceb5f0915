"""Tests which kinds are watched, according to resource.exclusions and resource.inclusions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.live.exclusions import Exclusions, read_exclusions
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import CONFIG_MAP, INGRESS


def reading(exclusions: str = "", inclusions: str = "", cluster: str = "https://east") -> Exclusions:
    return read_exclusions({"resource.exclusions": exclusions, "resource.inclusions": inclusions}, cluster)


@pytest.mark.parametrize(
    ("kind", "is_out"),
    [
        (GroupKind("", "Event"), True),
        (GroupKind("events.k8s.io", "Event"), True),
        (GroupKind("metrics.k8s.io", "PodMetrics"), True),
        (GroupKind("coordination.k8s.io", "Lease"), True),
        (GroupKind("coordination.k8s.io", "LeaseCandidate"), False),
        (GroupKind("sea.dev", "Event"), False),
        (CONFIG_MAP, False),
        (GroupKind("discovery.k8s.io", "EndpointSlice"), False),
    ],
)
def test_default_exclusions_contain_events_metrics_and_leases(kind: GroupKind, is_out: bool) -> None:
    assert read_exclusions({}).excludes(kind) is is_out


def test_fields_of_a_rule_are_found_in_any_case() -> None:
    exclusions = reading("- apigroups: ['']\n  Kinds: [ConfigMap]\n")
    assert exclusions.excludes(CONFIG_MAP) and not exclusions.excludes(INGRESS) and not exclusions.faults


NETWORK = "- apiGroups: [networking.k8s.io]\n"
ALL = "- apiGroups: ['*']\n"


@pytest.mark.parametrize(
    ("exclusions", "inclusions", "config_map_is_out", "ingress_is_out"),
    [
        ("", "", False, False),
        ("", NETWORK, True, False),
        (NETWORK, "", False, True),
        (NETWORK, NETWORK, True, True),
        (NETWORK, ALL, False, True),
        (ALL, NETWORK, True, True),
        ("- apiGroups: ['*.k8s.io']", "", False, True),
        ("- apiGroups: ['']", "", True, False),
        ("- kinds: [Ingress]", "", False, True),
        ("- kinds: ['*']", "", True, True),
        ("- kinds: ['Ing*']", "", False, False),
        ("- {}", "", True, True),
        ("- {apiGroups: [networking.k8s.io], kinds: [NetworkPolicy]}", "", False, False),
        ("- {apiGroups: [a, networking.k8s.io], kinds: [B, Ingress]}", "", False, True),
        ("- {kinds: [Ingress], clusters: ['https://e*']}", "", False, True),
        ("- {kinds: [Ingress], clusters: ['https://west']}", "", False, False),
        ("", "- {kinds: [Ingress], clusters: ['https://west']}", False, False),
        ("", "- {kinds: [Ingress], clusters: ['https://west']}\n- kinds: [ConfigMap]", False, True),
    ],
)
def test_exclusions_beat_inclusions_and_inclusions_exclude_the_rest(
    exclusions: str, inclusions: str, config_map_is_out: bool, ingress_is_out: bool
) -> None:
    rules = reading(exclusions, inclusions)
    assert (rules.excludes(CONFIG_MAP), rules.excludes(INGRESS)) == (config_map_is_out, ingress_is_out)


def test_inclusion_cannot_restore_default_exclusions() -> None:
    assert reading(inclusions="- kinds: [Event]").excludes(GroupKind("", "Event"))


@pytest.mark.parametrize(
    ("verbs", "is_watched"),
    [(("list", "watch"), True), (("get", "list", "watch"), True), (("list",), False), ((), False)],
)
def test_only_kinds_with_list_and_watch_are_watched(verbs: tuple[str, ...], is_watched: bool) -> None:
    assert reading().is_watched(CONFIG_MAP, verbs) is is_watched


def test_excluded_kind_is_not_watched() -> None:
    assert not reading(NETWORK).is_watched(INGRESS, ("list", "watch"))
    assert reading(NETWORK).is_watched(CONFIG_MAP)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [", "the setting is ignored until it is corrected"),
        ("- a: &x 1\n  b: [*y]", "the setting is ignored until it is corrected"),
        ("kinds: [A]", "must be a list"),
        ("just text", "must be a list"),
        ("- text", "[0] must be a map"),
        ("- kinds: A", "[0].kinds must be a list"),
        ("- kinds: [A]\n- apiGroups: [1]", "[1].apiGroups must be a list of strings"),
        ("- kind: [A]", "'kind' is not a field of a rule"),
        ("- kinds: ['Cilium*']", "invalid kind 'Cilium*'"),
    ],
)
@pytest.mark.parametrize("setting", ["resource.exclusions", "resource.inclusions"])
def test_invalid_setting_is_a_fault_that_names_it(setting: str, text: str, said: str) -> None:
    (fault,) = read_exclusions({setting: text}).faults
    assert fault.startswith(f"argocd-cm: {setting}: ")
    assert said in fault


def test_invalid_setting_leaves_the_other_in_effect() -> None:
    rules = reading("- [", NETWORK)
    assert rules.excludes(CONFIG_MAP) and not rules.excludes(INGRESS)


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_setting_text_is_read_without_error(text: str) -> None:
    rules = reading(text, text)
    assert rules.excludes(GroupKind("", "Event"))
    rules.excludes(CONFIG_MAP)
