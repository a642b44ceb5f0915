"""Trees of objects as pages show them: who is below whom, problems first, large groups folded."""

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


def test_what_came_of_an_object_stands_below_it() -> None:
    tree = tree_of(NODES, ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.key == WEB)
    assert [branch.leaf.name for branch in web.below] == ["web-1"]
    assert [branch.leaf.name for branch in web.below[0].below] == ["web-1-a"]


def test_what_is_desired_and_does_not_live_is_a_node_that_says_so() -> None:
    tree = tree_of(NODES, ROWS)
    assert next(branch.leaf.health for branch in tree.branches if branch.leaf.name == "gone") == "Missing"


def test_only_problems_keeps_what_leads_to_them() -> None:
    well = node("Deployment", "well", health=HealthStatus.HEALTHY)
    tree = tree_of([*NODES, well], [*ROWS, ManagedObjectRow(key("Deployment", "well"), "Synced")], only_problems=True)
    names = {branch.leaf.name for branch in tree.branches}
    assert "well" not in names
    assert "web" in names
    assert (
        next(branch for branch in tree.branches if branch.leaf.name == "web").below[0].below[0].leaf.name == "web-1-a"
    )


def test_many_of_a_kind_are_a_group_that_counts_its_problems() -> None:
    pods = [
        node("Pod", f"web-1-{at:03}", SET, HealthStatus.DEGRADED if at == 7 else HealthStatus.HEALTHY)
        for at in range(50)
    ]
    tree = tree_of([*NODES[:2], *pods], ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.name == "web")
    (group,) = web.below[0].groups
    assert (group.kind, group.count, group.problems) == ("Pod", 50, 1)
    assert not web.below[0].below


def test_a_few_of_a_kind_are_no_group() -> None:
    pods = [node("Pod", f"web-1-{at:03}", SET, HealthStatus.HEALTHY) for at in range(MAX_UNFOLDED_SIBLINGS)]
    tree = tree_of([*NODES[:2], *pods], ROWS)
    web = next(branch for branch in tree.branches if branch.leaf.name == "web")
    assert not web.below[0].groups
    assert len(web.below[0].below) == MAX_UNFOLDED_SIBLINGS


def test_a_ring_of_owners_ends() -> None:
    one, other = key("Deployment", "one"), key("Deployment", "other")
    ring = [node("Deployment", "one", other), node("Deployment", "other", one), node("Deployment", "web")]
    assert tree_of(ring, [ManagedObjectRow(WEB, "Synced")]).total == 3


def test_an_orphan_is_marked_and_stands_last() -> None:
    left = ResourceKey("", "ConfigMap", "ml", "a-left-over")
    tree = build_tree(NODES, build_tree_objects(NODES, ROWS, {}, APP, [left]))
    assert tree.branches[-1].leaf.is_orphan
    assert tree.branches[-1].leaf.key == left


def test_addresses_of_objects_cannot_be_broken_out_of() -> None:
    odd = ResourceKey("rbac.authorization.k8s.io", "ClusterRole", "", "system:a/b?x=1#y")
    tree_object = build_tree_objects([], [ManagedObjectRow(odd, "Synced")], {}, APP)[odd]
    assert tree_object.url == "/apps/argocd/web/r/rbac.authorization.k8s.io/ClusterRole/-/system:a%2Fb%3Fx%3D1%23y"


def many(count: int, pods: int = 0, **window: object) -> tuple[ApplicationTree, TreeGroup]:
    """Very many siblings, each with some below it."""
    sets = [node("Deployment", f"web-{at:04}", health=HealthStatus.HEALTHY) for at in range(count)]
    below = [node("Pod", f"{deployment.key.name}-{at}", deployment.key) for deployment in sets for at in range(pods)]
    group_window = GroupWindow(build_url=lambda name, at: f"{name}@{at}", **window)  # type: ignore[arg-type]
    tree = tree_of([*sets, *below], [], window=group_window)
    assert tree.total == count * (1 + pods)
    (group,) = tree.groups
    return tree, group


@pytest.mark.parametrize("pods", [0, 3, pytest.param(40, marks=pytest.mark.tier("all"))])
def test_of_very_many_a_part_is_sent_and_the_others_are_a_link_away(pods: int) -> None:
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


def test_a_part_that_is_not_there_is_the_first_one() -> None:
    _, group = many(250, group="Deployment", first=99_900)
    assert (group.first, group.last) == (0, MAX_SENT_PER_GROUP)


def test_only_what_is_sent_is_live() -> None:
    tree, group = many(250)
    assert [leaf.name for leaf in tree.list_sent()][::-1] == [branch.leaf.name for branch in group.branches]
