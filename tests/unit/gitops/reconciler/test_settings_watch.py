"""Settings are reloaded when they change; an invalid one keeps its last good value and does not affect others."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import AddressRefused
from argosy.fair_share import Budget
from argosy.gitops.application import Destination
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.policy.projects import permits_destination, permits_kind, permits_source
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import WorkerPool
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import SECRET


def config(name: str = "argocd-cm", namespace: str = "argocd", **data: str) -> Manifest:
    settings = {key.replace("__", "."): text for key, text in data.items()}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": settings}


class Desk:
    def __init__(self, folder: Path) -> None:
        self.cache = InformerCache()
        repositories = Repositories(folder, SourceSettings())
        self.settings = SettingsWatcher(self.cache, repositories, WorkerPool(), control_namespace="argocd")

    def write(self, manifest: Manifest) -> None:
        self.cache.put(manifest)
        assert self.settings.affects_settings(manifest)
        self.settings.invalidate()

    def remove(self, manifest: Manifest) -> None:
        self.cache.drop(key_of(manifest))
        self.settings.invalidate()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_timeouts_are_read_and_keep_their_last_good_value(desk: Desk) -> None:
    assert (
        desk.settings.current_settings().reconciliation_seconds,
        desk.settings.current_settings().jitter_seconds,
    ) == (120, 60)
    times = {"timeout__reconciliation": "10m", "timeout__reconciliation__jitter": "5s"}
    desk.write(config(**times, timeout__hard__reconciliation="1h"))
    rules = desk.settings.current_settings()
    assert (rules.reconciliation_seconds, rules.jitter_seconds, rules.hard_reconciliation_seconds, rules.faults) == (
        600,
        5,
        3600,
        (),
    )
    desk.write(config(**{**times, "timeout__reconciliation": "soon"}))
    rules = desk.settings.current_settings()
    assert (rules.reconciliation_seconds, rules.jitter_seconds, rules.hard_reconciliation_seconds) == (600, 5, 0)
    assert len(rules.faults) == 1 and "timeout.reconciliation" in rules.faults[0]


def test_jq_timeout_is_read_like_argocd(desk: Desk) -> None:
    def seconds() -> float:
        remove_all = desk.settings.current_settings().evaluate_jq
        assert isinstance(remove_all, partial)
        return float(remove_all.keywords["limits"].cpu)

    def set_timeout(text: str) -> None:
        desk.write(config("argocd-cmd-params-cm", controller__ignore__normalizer__jq__timeout=text))

    assert seconds() == 1
    set_timeout("2m30s")
    assert seconds() == 150
    remove_all = desk.settings.current_settings().evaluate_jq
    desk.write(config())
    assert desk.settings.current_settings().evaluate_jq is remove_all  # its cache of expressions is kept
    for wrong in ("5", "soon", "-1s"):
        set_timeout(wrong)
        assert seconds() == 150
        (fault,) = desk.settings.current_settings().faults
        assert "controller.ignore.normalizer.jq.timeout" in fault
    for default in ("0", "0s", ""):
        set_timeout(default)
        assert (seconds(), desk.settings.current_settings().faults) == (1, ())


def test_project_budget_is_read_and_keeps_its_last_good_value(desk: Desk) -> None:
    tenant = desk.settings.current_settings().build_tenant("team")
    assert (tenant.name, tenant.budget.seconds, tenant.budget.window) == ("team", 60, 300)
    settings = {"fairness__project__budget": "2m", "fairness__project__window": "10m"}
    desk.write(config("argosy-cm", **settings))
    assert desk.settings.current_settings().budget == Budget(120, 600) and not desk.settings.current_settings().faults
    desk.write(config("argosy-cm", **{**settings, "fairness__project__window": "0s"}))
    rules = desk.settings.current_settings()
    assert rules.budget == Budget(120, 600)
    assert rules.faults == (
        "argosy-cm: fairness.project.window: '0s': the duration must be longer than zero, such as 60s",
    )


def test_impersonation_stays_enabled_while_the_config_map_is_missing(desk: Desk) -> None:
    assert not desk.settings.current_settings().impersonation.is_enabled
    written = config(application__sync__impersonation__enabled="true")
    desk.write(written)
    assert desk.settings.current_settings().impersonation.is_enabled
    desk.remove(written)
    assert desk.settings.current_settings().impersonation.is_enabled
    desk.write(config())
    assert not desk.settings.current_settings().impersonation.is_enabled
    desk.remove(written)
    assert not desk.settings.current_settings().impersonation.is_enabled


EXCLUDED = "- kinds: [Secret]\n  clusters: ['*']\n  apiGroups: ['*']\n"
RESTRICTIONS: dict[str, tuple[Manifest, Callable[[ReconcilerSettings], Any], Any]] = {
    "own cluster": (config(cluster__inClusterEnabled="false"), lambda rules: rules.clusters.has_in_cluster, False),
    "exclusions": (config(resource__exclusions=EXCLUDED), lambda rules: len(rules.exclusions.excluded), 1),
    "tracking": (config(application__resourceTrackingMethod="label"), lambda rules: rules.tracking.method, "label"),
    "protocols": (
        config("argosy-cm", source__protocols="https"), lambda rules: rules.repositories.settings.protocols,
        frozenset({"https"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESTRICTIONS)
def test_restriction_holds_while_its_config_map_is_replaced(desk: Desk, name: str) -> None:
    written, read, restricted = RESTRICTIONS[name]
    default = read(desk.settings.current_settings())
    desk.write(written)
    assert read(desk.settings.current_settings()) == restricted != default
    desk.remove(written)
    assert read(desk.settings.current_settings()) == restricted, (
        "kubectl replace --force deletes it and creates it again"
    )
    empty = config(written["metadata"]["name"])
    desk.write(empty)
    assert read(desk.settings.current_settings()) == default
    desk.remove(empty)
    assert read(desk.settings.current_settings()) == default


def test_observed_generation_kinds_are_read_and_keep_their_last_good_value(desk: Desk) -> None:
    notebooks = ("mlops.mlops.dev/NotebookValidationJob",)
    assert desk.settings.current_settings().sync.observed_kinds == notebooks
    patterns = "mlops.mlops.dev/*, apps/{Deployment,StatefulSet}\n  serving.kserve.io/*"
    read = ("mlops.mlops.dev/*", "apps/{Deployment,StatefulSet}", "serving.kserve.io/*")
    desk.write(config("argosy-cm", sync__observedGeneration=patterns))
    assert desk.settings.current_settings().sync.observed_kinds == read
    desk.write(config("argosy-cm", sync__observedGeneration="apps/{Deployment"))
    rules = desk.settings.current_settings()
    assert rules.sync.observed_kinds == read, "the last good value holds"
    assert len(rules.faults) == 1 and "sync.observedGeneration" in rules.faults[0]
    desk.write(config("argosy-cm", sync__observedGeneration=""))
    assert desk.settings.current_settings().sync.observed_kinds == ()
    desk.write(config("argosy-cm"))
    assert desk.settings.current_settings().sync.observed_kinds == notebooks


def test_refused_repository_error_names_the_setting_that_allows_it(desk: Desk) -> None:
    pattern = r"below a folder listed in source\.local\.roots in the ConfigMap argosy-cm of namespace argocd"
    with pytest.raises(AddressRefused, match=pattern):
        desk.settings.current_settings().repositories.settings.locate(parse_url("/srv/git/models"))


def test_build_options_are_read(desk: Desk) -> None:
    before = desk.settings.current_settings().build
    desk.write(config(kustomize__buildOptions="--enable-helm"))
    assert desk.settings.current_settings().build != before
    other = desk.settings.current_settings().build
    desk.write(config(helm__enable="false"))
    assert desk.settings.current_settings().build not in (before, other)
    desk.write(config())
    assert desk.settings.current_settings().build == before


def write_project(desk: Desk, name: str, labels: dict[str, str], **spec: Any) -> None:
    metadata = {"name": name, "namespace": "argocd", "labels": labels}
    desk.write({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec})


PRODUCTION_INHERITS_HOUSE = "[{labelSelector: {matchLabels: {stage: prod}}, projectName: house}]"


def test_projects_inherit_from_global_projects(desk: Desk) -> None:
    assert "default" in desk.settings.current_settings().projects
    write_project(desk, "house", {}, sourceRepos=["https://git.example/house"])
    write_project(desk, "shop", {"stage": "prod"}, sourceRepos=[])
    desk.write(config(globalProjects=PRODUCTION_INHERITS_HOUSE))
    assert desk.settings.current_settings().projects["shop"].source_repos == ("https://git.example/house",)


def write_scoped_repository(desk: Desk, project: str, url: str) -> None:
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in {"project": project, "url": url}.items()}
    metadata = {"name": f"repo-{project}", "namespace": "argocd", "labels": labels}
    desk.write({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def test_project_permits_its_scoped_repositories_which_no_project_inherits(desk: Desk) -> None:
    write_project(desk, "house", {})
    write_project(desk, "shop", {"stage": "prod"})
    desk.write(config(globalProjects=PRODUCTION_INHERITS_HOUSE))
    write_scoped_repository(desk, "shop", "https://git.example/shop")
    write_scoped_repository(desk, "house", "https://git.example/house")
    projects = desk.settings.current_settings().projects
    assert permits_source(projects["shop"], "https://git.example/shop")
    assert not permits_source(projects["shop"], "https://git.example/house")
    assert permits_source(projects["house"], "https://git.example/house")


MISSPELT_GLOBAL_PROJECTS = [
    "no: list",
    "[oh",
    "[{labelSelectr: {matchLabels: {stage: prod}}, projectName: house}]",
    "[{labelSelector: {matchLabel: {stage: prod}}, projectName: house}]",
]


@pytest.mark.parametrize("misspelt", MISSPELT_GLOBAL_PROJECTS)
def test_misspelt_global_projects_keep_the_last_good_rules_for_the_current_projects(desk: Desk, misspelt: str) -> None:
    write_project(desk, "house", {}, namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}])
    desk.write(config(globalProjects=PRODUCTION_INHERITS_HOUSE))
    assert not desk.settings.current_settings().faults
    desk.write(config(globalProjects=misspelt))
    write_project(desk, "shop", {"stage": "prod"}, sourceRepos=["*"])  # created after the setting was broken
    rules = desk.settings.current_settings()
    assert not permits_kind(rules.projects["shop"], SECRET, is_namespaced=True)
    assert permits_source(rules.projects["shop"], "https://git.example/shop")
    (fault,) = rules.faults
    assert fault.startswith("argocd-cm: globalProjects: ")
    desk.write(config())
    rules = desk.settings.current_settings()
    assert permits_kind(rules.projects["shop"], SECRET, is_namespaced=True) and not rules.faults


@pytest.mark.parametrize("misspelt", MISSPELT_GLOBAL_PROJECTS)
def test_misspelt_global_projects_deny_everything_until_read_once(desk: Desk, misspelt: str) -> None:
    desk.settings.current_settings()  # before the ConfigMaps are listed: not a good value
    write_project(desk, "house", {}, namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}])
    write_project(desk, "shop", {"stage": "prod"}, sourceRepos=["*"], destinations=[{"server": "*", "namespace": "*"}])
    write_scoped_repository(desk, "shop", "https://git.example/shop")
    desk.write(config(globalProjects=misspelt))
    rules = desk.settings.current_settings()
    for project in rules.projects.values():
        assert not permits_source(project, "https://git.example/shop")
        assert not permits_destination(project, Destination(server="https://kubernetes.default.svc", namespace="a"))
        assert not permits_kind(project, GroupKind("", "ConfigMap"), is_namespaced=True)
        assert not permits_kind(project, GroupKind("", "Namespace"), is_namespaced=False)
    assert {"default", "house", "shop"} == set(rules.projects)
    (fault,) = rules.faults
    assert fault.startswith("argocd-cm: globalProjects: ")
    desk.write(config(globalProjects=PRODUCTION_INHERITS_HOUSE))
    rules = desk.settings.current_settings()
    assert permits_source(rules.projects["shop"], "https://git.example/shop") and not rules.faults


def test_projects_keep_inherited_rules_while_the_config_map_is_missing(desk: Desk) -> None:
    write_project(desk, "house", {}, namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}])
    write_project(desk, "shop", {"stage": "prod"}, sourceRepos=["*"])
    written = config(globalProjects=PRODUCTION_INHERITS_HOUSE)
    desk.write(written)
    desk.settings.current_settings()
    desk.remove(written)
    assert not permits_kind(desk.settings.current_settings().projects["shop"], SECRET, is_namespaced=True)
    desk.write(config())
    assert permits_kind(desk.settings.current_settings().projects["shop"], SECRET, is_namespaced=True)


def test_invalid_project_is_left_out_and_reported(desk: Desk) -> None:
    metadata = {"name": "odd", "namespace": "argocd"}
    spec = {"sourceRepos": "all"}
    desk.write({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec})
    rules = desk.settings.current_settings()
    assert "odd" not in rules.projects and "AppProject odd" in rules.faults[0]


def test_only_settings_objects_in_the_control_namespace_affect_settings(desk: Desk) -> None:
    assert not desk.settings.affects_settings(config(namespace="elsewhere"))
    assert not desk.settings.affects_settings(config(name="another"))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "argocd"}}
    assert not desk.settings.affects_settings(account)


def test_resource_exclusions_decide_which_kinds_are_watched(desk: Desk) -> None:
    kind = GroupKind("example.io", "Widget")
    assert desk.settings.current_settings().exclusions.is_watched(kind)
    desk.write(config(resource__exclusions="- {apiGroups: [example.io], kinds: [Widget]}"))
    assert not desk.settings.current_settings().exclusions.is_watched(kind)
    desk.write(config(resource__exclusions="[oh"))
    rules = desk.settings.current_settings()
    assert not rules.exclusions.is_watched(kind) and "resource.exclusions" in rules.faults[0]


RESTRICTING = [
    ("argocd-cm", "resource.exclusions", "- {apiGroups: [example.io], kinds: [Widget]}", "[oh"),
    ("argocd-cm", "resource.inclusions", "- {apiGroups: [apps], kinds: [Deployment]}", "no: list"),
    ("argocd-cm", "globalProjects", PRODUCTION_INHERITS_HOUSE, "[oh"),
    ("argosy-cm", "source.protocols", "https", "htps"),
]


@pytest.mark.parametrize(("place", "key", "good", "wrong"), RESTRICTING)
def test_restricting_setting_that_was_never_valid_is_an_unread_restriction(
    desk: Desk, place: str, key: str, good: str, wrong: str
) -> None:
    desk.settings.current_settings()  # before the ConfigMaps are listed: not a good value
    desk.write(config(place, **{key: wrong}))
    rules = desk.settings.current_settings()
    (fault,) = rules.unread_restrictions
    assert fault in rules.faults and fault.startswith(f"{place}: {key}: ")
    desk.write(config(place, **{key: good}))
    assert (desk.settings.current_settings().unread_restrictions, desk.settings.current_settings().faults) == ((), ())
    desk.write(config(place, **{key: wrong}))
    rules = desk.settings.current_settings()
    assert rules.unread_restrictions == () and len(rules.faults) == 1, "the last good value holds"


def test_other_invalid_settings_are_not_unread_restrictions(desk: Desk) -> None:
    desk.write(config("argosy-cm", source__limit__fetch__bytes="many", fairness__project__budget="abc"))
    rules = desk.settings.current_settings()
    assert len(rules.faults) == 2 and rules.unread_restrictions == ()


@pytest.mark.parametrize(("protocols", "refused"), [("https", "ssh"), ("htps", "https"), ("htps", "ssh")])
def test_invalid_source_setting_allows_no_further_protocol(desk: Desk, protocols: str, refused: str) -> None:
    desk.write(config("argosy-cm", source__protocols=protocols, source__limit__fetch__bytes="many"))
    rules = desk.settings.current_settings()
    with pytest.raises(AddressRefused, match=f"protocol {refused} is not allowed"):
        rules.repositories.settings.locate(parse_url(f"{refused}://git.example/models"))
    assert bool(rules.unread_restrictions) is (protocols == "htps")


def test_self_heal_backoff_is_read(desk: Desk) -> None:
    assert [desk.settings.current_settings().heal_backoff.delay_seconds(count) for count in range(4)] == [0, 2, 6, 18]
    backoff = "controller__self__heal__backoff__"
    settings = {f"{backoff}timeout__seconds": "1", f"{backoff}factor": "10", f"{backoff}cap__seconds": "60"}
    desk.write(config("argocd-cmd-params-cm", **settings))
    assert [desk.settings.current_settings().heal_backoff.delay_seconds(count) for count in range(4)] == [0, 1, 10, 60]
    flat = {f"{backoff}timeout__seconds": "0", "controller__self__heal__timeout__seconds": "7"}
    desk.write(config("argocd-cmd-params-cm", **flat))
    assert [desk.settings.current_settings().heal_backoff.delay_seconds(count) for count in range(3)] == [7, 7, 7]
    desk.write(config("argocd-cmd-params-cm", **{f"{backoff}factor": "many"}))
    rules = desk.settings.current_settings()
    assert rules.heal_backoff.delay_seconds(1) == 7 and f"{backoff}factor".replace("__", ".") in rules.faults[0]
