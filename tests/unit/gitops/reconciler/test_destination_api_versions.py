"""The API versions of a destination, as plug-ins get them."""

from __future__ import annotations

from argosy.gitops.application import Application, read_source
from argosy.gitops.reconciler.destination_api_versions import DestinationBuildSettings
from argosy.gitops.reconciler.render_cache import digest_source
from argosy.gitops.render import BuildSettings, build_environment
from argosy.kube.client import KindInfo
from argosy.kube.resource_key import GroupKind

WATCHABLE = ("get", "list", "watch")
KINDS = {
    GroupKind("", "ConfigMap"): KindInfo("v1", "configmaps", True, ("v1",), WATCHABLE),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): KindInfo("v2", "h", True, ("v2", "v1"), WATCHABLE),
    GroupKind("authorization.k8s.io", "SubjectAccessReview"): KindInfo("v1", "s", False, ("v1",), ("create",)),
}
APP, SOURCE = Application(name="demo"), read_source({"path": "app", "repoURL": "https://x/y"})


def test_plugins_get_versions_and_kinds_that_can_be_watched() -> None:
    settings = DestinationBuildSettings().find(BuildSettings(), KINDS)
    assert build_environment(APP, SOURCE, "abc", settings)["KUBE_API_VERSIONS"].split(",") == [
        "autoscaling/v1",
        "autoscaling/v1/HorizontalPodAutoscaler",
        "autoscaling/v2",
        "autoscaling/v2/HorizontalPodAutoscaler",
        "v1",
        "v1/ConfigMap",
    ]


def test_new_kind_in_the_cluster_does_not_render_other_sources_again() -> None:
    build = BuildSettings()
    settings = DestinationBuildSettings().find(build, KINDS)
    assert digest_source(APP, SOURCE, settings) == digest_source(APP, SOURCE, build)
