from __future__ import annotations

from argosy.kube.schema.api_resource import ApiResource, Subresource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES


def resource(api_version: str, plural: str) -> ApiResource:
    return next(
        candidate
        for candidate in BUILTIN_RESOURCES
        if candidate.api_version == api_version and candidate.plural == plural
    )


def test_api_groups_start_with_core_apiregistration_and_apps() -> None:
    groups = list(dict.fromkeys(builtin_resource.group for builtin_resource in BUILTIN_RESOURCES))
    assert groups[:5] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]


def test_preferred_version_is_listed_first() -> None:
    assert [
        builtin_resource.version
        for builtin_resource in BUILTIN_RESOURCES
        if builtin_resource.kind == "HorizontalPodAutoscaler"
    ] == ["v2", "v1"]


def test_core_event_is_first_kind_with_short_name_ev() -> None:
    assert (
        next(
            builtin_resource for builtin_resource in BUILTIN_RESOURCES if "ev" in builtin_resource.short_names
        ).api_version
        == "v1"
    )


def test_no_kind_is_served_twice_in_one_version() -> None:
    names = [(builtin_resource.api_version, builtin_resource.plural) for builtin_resource in BUILTIN_RESOURCES]
    assert (
        len(set(names))
        == len(names)
        == len({(builtin_resource.api_version, builtin_resource.kind) for builtin_resource in BUILTIN_RESOURCES})
    )


def test_scale_subresource_of_deployments_is_autoscaling_v1_scale() -> None:
    scale = resource("apps/v1", "deployments").find_subresource("scale")
    assert scale == Subresource("scale", ("get", "patch", "update"), "autoscaling", "v1", "Scale")


def test_proxy_options_kinds_are_named_after_their_parent() -> None:
    kinds = {
        plural: subresource.kind
        for plural in ("nodes", "pods", "services")
        if (subresource := resource("v1", plural).find_subresource("proxy"))
    }
    assert kinds == {"nodes": "NodeProxyOptions", "pods": "PodProxyOptions", "services": "ServiceProxyOptions"}


def test_reviews_can_only_be_created() -> None:
    reviews = [builtin_resource for builtin_resource in BUILTIN_RESOURCES if builtin_resource.kind.endswith("Review")]
    assert len(reviews) == 6
    assert {review.verbs for review in reviews} == {("create",)}


def test_namespaces_do_not_support_deletecollection() -> None:
    assert "deletecollection" not in resource("v1", "namespaces").verbs


def test_category_all_has_workloads_services_and_autoscalers() -> None:
    assert {
        builtin_resource.plural for builtin_resource in BUILTIN_RESOURCES if "all" in builtin_resource.categories
    } == {
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
