from __future__ import annotations

from argosy.kube.schema.api_resource import ApiResource, Subresource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES


def resource(api_version: str, plural: str) -> ApiResource:
    return next(each for each in BUILTIN_RESOURCES if each.api_version == api_version and each.plural == plural)


def test_the_core_group_comes_first_and_apps_before_the_other_groups_that_people_name() -> None:
    groups = list(dict.fromkeys(each.group for each in BUILTIN_RESOURCES))
    assert groups[:5] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]


def test_a_group_shows_its_preferred_version_first() -> None:
    assert [each.version for each in BUILTIN_RESOURCES if each.kind == "HorizontalPodAutoscaler"] == ["v2", "v1"]


def test_the_first_holder_of_a_short_name_is_the_core_kind() -> None:
    assert next(each for each in BUILTIN_RESOURCES if "ev" in each.short_names).api_version == "v1"


def test_no_kind_is_served_twice_in_one_version() -> None:
    names = [(each.api_version, each.plural) for each in BUILTIN_RESOURCES]
    assert len(set(names)) == len(names) == len({(each.api_version, each.kind) for each in BUILTIN_RESOURCES})


def test_scale_answers_with_a_kind_of_another_group() -> None:
    scale = resource("apps/v1", "deployments").find_subresource("scale")
    assert scale == Subresource("scale", ("get", "patch", "update"), "autoscaling", "v1", "Scale")


def test_proxies_are_named_after_their_parent() -> None:
    kinds = {
        plural: found.kind
        for plural in ("nodes", "pods", "services")
        if (found := resource("v1", plural).find_subresource("proxy"))
    }
    assert kinds == {"nodes": "NodeProxyOptions", "pods": "PodProxyOptions", "services": "ServiceProxyOptions"}


def test_reviews_can_only_be_created() -> None:
    reviews = [each for each in BUILTIN_RESOURCES if each.kind.endswith("Review")]
    assert len(reviews) == 6
    assert {each.verbs for each in reviews} == {("create",)}


def test_namespaces_cannot_be_deleted_all_at_once() -> None:
    assert "deletecollection" not in resource("v1", "namespaces").verbs


def test_the_category_all_holds_workloads_and_services_only() -> None:
    assert {each.plural for each in BUILTIN_RESOURCES if "all" in each.categories} == {
        "pods",
        "replicationcontrollers",
        "services",
        "daemonsets",
        "deployments",
        "replicasets",
        "statefulsets",
        "horizontalpodautoscalers",
        "cronjobs",
        "jobs",
    }
