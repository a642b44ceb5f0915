"""Resource trees as pages show them: hierarchy, problem filter, and groups of many siblings."""

from __future__ import annotations

import pytest

from argosy.features.applications.tree.page_values import (
    MAX_SENT_IN_ALL_GROUPS,
    MAX_SENT_PER_GROUP,
    MAX_UNFOLDED_SIBLINGS,
    ApplicationTree,
    GroupWindow,
    TreeGroup,
    build_tree,
    build_tree_objects,
)
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application_client.status_summary import ManagedObjectRow
from argosy.gitops.live.parent_references import ParentRef
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.kube.resource_key import ResourceKey

APP = ("argocd", "web")


def key(kind: str, name: str) -> ResourceKey:
    return ResourceKey("apps" if kind != "Pod" else "", kind, "ml", name)


def node(kind: str, name: str, above: ResourceKey | None = None, health: HealthStatus | None = None) -> ResourceNode:
    parents = (ParentRef(above, ""),) if above else ()
    return ResourceNode(key(kind, name), "v1", "uid", parents=parents, health=Assessment(health) if health else None)


def tree_of(nodes: list[ResourceNode], rows: list[ManagedObjectRow], **options: object) -> ApplicationTree:
    return build_tree(nodes, build_tree_objects(nodes, rows, {}, APP), **options)  # type: ignore[arg-type]


WEB, SET = key("Deployment", "web"), key("ReplicaSet", "web-1")
ROWS = [ManagedObjectRow(WEB, "Synced"), ManagedObjectRow(key("Deployment", "gone"), "OutOfSync")]
NODES = [
    node("Deployment", "web", health=HealthStatus.DEGRADED),
    node("ReplicaSet", "web-1", WEB, HealthStatus.HEALTHY),
    node("Pod", "web-1-a", SET, HealthStatus.DEGRADED),
]


def test_children_are_listed_below_their_owner() -> None:
    tree = tree_of(NODES, ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.key == WEB)
    assert [branch.leaf.name for branch in web.below] == ["web-1"]
    assert [branch.leaf.name for branch in web.below[0].below] == ["web-1-a"]


def test_desired_object_that_does_not_exist_is_a_missing_node() -> None:
    tree = tree_of(NODES, ROWS)
    assert next(branch.leaf.health for branch in tree.branches if branch.leaf.name == "gone") == "Missing"


def test_only_problems_keeps_the_ancestors_of_problems() -> None:
    well = node("Deployment", "well", health=HealthStatus.HEALTHY)
    tree = tree_of([*NODES, well], [*ROWS, ManagedObjectRow(key("Deployment", "well"), "Synced")], only_problems=True)
    names = {branch.leaf.name for branch in tree.branches}
    assert "well" not in names
    assert "web" in names
    assert (
        next(branch for branch in tree.branches if branch.leaf.name == "web").below[0].below[0].leaf.name == "web-1-a"
    )


def test_many_siblings_of_a_kind_become_a_group_with_problem_count() -> None:
    pods = [
        node("Pod", f"web-1-{at:03}", SET, HealthStatus.DEGRADED if at == 7 else HealthStatus.HEALTHY)
        for at in range(50)
    ]
    tree = tree_of([*NODES[:2], *pods], ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.name == "web")
    (group,) = web.below[0].groups
    assert (group.kind, group.count, group.problems) == ("Pod", 50, 1)
    assert not web.below[0].below


def test_few_siblings_of_a_kind_are_not_grouped() -> None:
    pods = [node("Pod", f"web-1-{at:03}", SET, HealthStatus.HEALTHY) for at in range(MAX_UNFOLDED_SIBLINGS)]
    tree = tree_of([*NODES[:2], *pods], ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.name == "web")
    assert not web.below[0].groups
    assert len(web.below[0].below) == MAX_UNFOLDED_SIBLINGS


def test_owner_cycle_does_not_loop_forever() -> None:
    one, other = key("Deployment", "one"), key("Deployment", "other")
    ring = [node("Deployment", "one", other), node("Deployment", "other", one), node("Deployment", "web")]
    assert tree_of(ring, [ManagedObjectRow(WEB, "Synced")]).total == 3


def test_orphan_is_marked_and_listed_last() -> None:
    left = ResourceKey("", "ConfigMap", "ml", "a-left-over")
    tree = build_tree(NODES, build_tree_objects(NODES, ROWS, {}, APP, [left]))
    assert tree.branches[-1].leaf.is_orphan
    assert tree.branches[-1].leaf.key == left


def test_object_url_escapes_special_characters() -> None:
    odd = ResourceKey("rbac.authorization.k8s.io", "ClusterRole", "", "system:a/b?x=1#y")
    tree_object = build_tree_objects([], [ManagedObjectRow(odd, "Synced")], {}, APP)[odd]
    assert tree_object.url == "/apps/argocd/web/r/rbac.authorization.k8s.io/ClusterRole/-/system:a%2Fb%3Fx%3D1%23y"


def many(count: int, pods: int = 0, **window: object) -> tuple[ApplicationTree, TreeGroup]:
    """Many sibling Deployments, each with `pods` Pods below it."""
    sets = [node("Deployment", f"web-{at:04}", health=HealthStatus.HEALTHY) for at in range(count)]
    below = [node("Pod", f"{deployment.key.name}-{at}", deployment.key) for deployment in sets for at in range(pods)]
    group_window = GroupWindow(build_url=lambda name, at: f"{name}@{at}", **window)  # type: ignore[arg-type]
    tree = tree_of([*sets, *below], [], window=group_window)
    assert tree.total == count * (1 + pods)
    (group,) = tree.groups
    return tree, group


@pytest.mark.parametrize("pods", [0, 3, pytest.param(40, marks=pytest.mark.tier("all"))])
def test_large_group_is_sent_in_pages_linked_to_each_other(pods: int) -> None:
    tree, group = many(250, pods)
    assert (group.first, group.count, group.start, group.is_open) == (0, 250, "", False)
    branch_names = [branch.leaf.name for branch in group.branches]
    while group.after:
        assert len(list(tree.list_sent())) <= MAX_SENT_IN_ALL_GROUPS
        name, _, first = group.after.partition("@")
        tree, group = many(250, pods, group=name, first=int(first))
        assert group.is_open and group.start
        branch_names += [branch.leaf.name for branch in group.branches]
    assert branch_names == [f"web-{at:04}" for at in range(250)]


def test_page_beyond_the_end_of_a_group_shows_the_first_page() -> None:
    _, group = many(250, group="Deployment", first=99_900)
    assert (group.first, group.last) == (0, MAX_SENT_PER_GROUP)


def test_list_sent_contains_only_the_nodes_on_the_page() -> None:
    tree, group = many(250)
    assert [leaf.name for leaf in tree.list_sent()][::-1] == [branch.leaf.name for branch in group.branches]
