"""The resource tree of an Application as nested template values, with large groups folded.

In: nodes, rows of the status, reasons. Out: ApplicationTree. Never: calls a cluster; loops on cyclic owner references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from argosy.features.applications.page_parts.resource_key_template_attributes import KeyProperties
from argosy.features.applications.page_parts.url_paths import resource_element_id, resource_path
from argosy.gitops.application import Application
from argosy.gitops.application_client.status_summary import ManagedObjectRow
from argosy.gitops.application_client.status_summary import list_rows as rows_of
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.kube.resource_key import ResourceKey

MAX_UNFOLDED_SIBLINGS = 20  # siblings of one kind shown without a group
MAX_SENT_PER_GROUP = 60  # objects of a top-level group
MAX_SENT_PER_NESTED_GROUP = 10  # objects of a nested group
MAX_SENT_IN_ALL_GROUPS = 200  # objects of all groups, with their descendants
MIN_SENT_PER_GROUP = 50
UNHEALTHY_STATES = frozenset({"Degraded", "Missing", "Unknown"})
NOT_HEALTHY_STATES = UNHEALTHY_STATES | {"Progressing", "Suspended"}


@dataclass(frozen=True, slots=True)
class TreeObject(KeyProperties):
    """One object. `status` is empty for objects that are only children of managed ones."""

    key: ResourceKey
    id: str
    app: tuple[str, str] | None = None  # namespace and name of its Application
    status: str = ""
    health: str = ""
    message: str = ""
    wave: int | None = None
    created: str = ""
    hook: str = ""
    is_orphan: bool = False
    is_pruned: bool = False  # in the cluster, not in Git
    info: tuple[tuple[str, str], ...] = ()

    @property
    def url(self) -> str:
        """Built on access, because most of thousands of objects are not shown."""
        return resource_path(*self.app, self.key) if self.app else ""

    @property
    def is_problem(self) -> bool:
        return self.health in NOT_HEALTHY_STATES or self.status in ("OutOfSync", "SyncFailed", "Failed", "Error")


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """Many siblings of one kind, folded; large groups are paged."""

    kind: str
    count: int
    problems: int
    branches: tuple[TreeBranch, ...]
    id: str = ""
    first: int = 0  # index of the first branch shown
    start: str = ""  # URL of the first page, if this is another one
    after: str = ""  # URL of the next page
    is_open: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.branches)


@dataclass(frozen=True, slots=True)
class TreeBranch:
    leaf: TreeObject
    below: tuple[TreeBranch, ...] = ()
    groups: tuple[TreeGroup, ...] = ()
    problems: int = 0  # of this object and its descendants
    size: int = 1  # number of objects sent

    @property
    def is_open(self) -> bool:
        return self.problems > 0 or len(self.below) <= 3


@dataclass(frozen=True, slots=True)
class ApplicationTree:
    branches: tuple[TreeBranch, ...]
    groups: tuple[TreeGroup, ...]
    total: int
    problems: int
    kinds: tuple[str, ...] = ()

    def list_sent(self) -> Iterator[TreeObject]:
        """Yield every object that is sent to the browser."""
        pending = [*self.branches, *(branch_below for group in self.groups for branch_below in group.branches)]
        while pending:
            branch = pending.pop()
            yield branch.leaf
            pending += [*branch.below, *(branch_below for group in branch.groups for branch_below in group.branches)]


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """The page of the group that is open, and the URLs of other pages."""

    group: str = ""
    first: int = 0
    build_url: Callable[[str, int], str] = lambda group, first: ""

    def build_group(self, kind: str, branches: Sequence[TreeBranch], owner: str, max_objects: int) -> TreeGroup:
        """`max_objects` limits the objects sent, including descendants."""
        name = f"{owner}:{kind}" if owner else kind
        is_open = name == self.group
        first = self.first if is_open and self.first < len(branches) else 0
        sent: list[TreeBranch] = []
        for branch in branches[first : first + (MAX_SENT_PER_NESTED_GROUP if owner else MAX_SENT_PER_GROUP)]:
            max_objects -= branch.size
            if sent and max_objects < 0:
                break
            sent.append(branch)
        last = first + len(sent)
        return TreeGroup(
            kind,
            len(branches),
            sum(branch.problems > 0 for branch in branches),
            tuple(sent),
            name,
            first,
            self.build_url(name, 0) if first else "",
            self.build_url(name, last) if last < len(branches) else "",
            is_open,
        )


def list_rows_without_success_messages(
    app: Application, health: Mapping[ResourceKey, str] | None = None
) -> list[ManagedObjectRow]:
    """argo: A message is from apply, so it is kept only for failures, hooks and objects to prune."""
    rows = rows_of(app, health)
    failed = {
        key
        for key, result in (app.state.list_results({row.key for row in rows}) if app.state else ())
        if result.result_code == "SyncFailed" or result.hook_phase in ("Failed", "Error")
    }
    return [
        row if row.key in failed or row.hook or "requires pruning" in row.message else row._replace(message="")
        for row in rows
    ]


def build_tree_objects(
    nodes: Sequence[ResourceNode],
    rows: Sequence[ManagedObjectRow],
    reasons: Mapping[ResourceKey, str],
    app: tuple[str, str],
    orphans: Iterable[ResourceKey] = (),
) -> dict[ResourceKey, TreeObject]:
    """Build managed, live and orphaned objects. `app` is namespace and name of the Application."""
    rows_by_key = {row.key: row for row in rows}
    objects = {
        node.key: _build_tree_object(node, rows_by_key.get(node.key), reasons.get(node.key, ""), app) for node in nodes
    }
    for row in rows:
        if row.key not in objects:
            health = row.health or ("" if row.hook else "Missing")
            objects[row.key] = TreeObject(
                row.key, resource_element_id(row.key), app, row.status, health, row.message, row.wave, hook=row.hook
            )
    for key in orphans:
        objects.setdefault(key, TreeObject(key, resource_element_id(key), is_orphan=True))
    return objects


def _build_tree_object(
    node: ResourceNode, row: ManagedObjectRow | None, reason: str, app: tuple[str, str]
) -> TreeObject:
    health = node.health.health.value if node.health and node.health.health else ""
    info = tuple((str(name), str(value)) for name, value in node.info if value)
    return TreeObject(
        node.key,
        resource_element_id(node.key),
        app,
        row.status if row else "",
        health,
        (reason if health != "Healthy" else "") or (row.message if row and row.status not in ("Synced", "") else ""),
        row.wave if row else None,
        node.created,
        row.hook if row else "",
        is_pruned=bool(row and "requires pruning" in row.message),
        info=info,
    )


def build_tree(
    nodes: Sequence[ResourceNode],
    objects: Mapping[ResourceKey, TreeObject],
    *,
    only_problems: bool = False,
    kind: str = "",
    text: str = "",
    window: GroupWindow | None = None,
) -> ApplicationTree:
    """Build the tree, problems first. Objects that match the filters are shown with all their ancestors."""
    window = window or GroupWindow()
    children: dict[ResourceKey, list[ResourceKey]] = {}
    roots: list[ResourceKey] = []
    parents = {node.key: [item.key for item in node.parents] for node in nodes}
    for key in objects:
        parent = next((item for item in parents.get(key, ()) if item in objects and item != key), None)
        if parent is None:
            roots.append(key)
        else:
            children.setdefault(parent, []).append(key)

    def matches_filters(leaf: TreeObject) -> bool:
        return (
            (not only_problems or leaf.is_problem)
            and (not kind or leaf.key.kind == kind)
            and (not text or text.lower() in f"{leaf.key.kind}/{leaf.key.name}".lower())
        )

    def build_branch(key: ResourceKey) -> TreeBranch | None:
        leaf = objects[key]
        inner_branches = [branch for child in children.pop(key, ()) if (branch := build_branch(child)) is not None]
        if not inner_branches and not matches_filters(leaf):
            return None
        shown_branches, groups = _fold_large_groups(inner_branches, window, leaf.id)
        size = (
            1
            + sum(branch.size for branch in shown_branches)
            + sum(branch.size for group in groups for branch in group.branches)
        )
        return TreeBranch(
            leaf, shown_branches, groups, leaf.is_problem + sum(branch.problems for branch in inner_branches), size
        )

    inner_branches = [item for key in roots if (item := build_branch(key)) is not None]
    shown_branches, groups = _fold_large_groups(inner_branches, window)
    kinds = tuple(sorted({key.kind for key in objects}))
    return ApplicationTree(
        shown_branches, groups, len(objects), sum(leaf.is_problem for leaf in objects.values()), kinds
    )


def _fold_large_groups(
    branches: list[TreeBranch], window: GroupWindow, owner: str = ""
) -> tuple[tuple[TreeBranch, ...], tuple[TreeGroup, ...]]:
    """Sort by problems, wave, kind and name; fold more than MAX_UNFOLDED_SIBLINGS of a kind into a group."""
    ordered = sorted(branches, key=_sort_key)
    kinds: dict[str, list[TreeBranch]] = {}
    for branch in ordered:
        kinds.setdefault(branch.leaf.key.kind, []).append(branch)
    large_kinds = {kind for kind, siblings in kinds.items() if len(siblings) > MAX_UNFOLDED_SIBLINGS}
    max_objects = max(MAX_SENT_IN_ALL_GROUPS // max(len(large_kinds), 1), MIN_SENT_PER_GROUP)
    groups = tuple(
        window.build_group(kind, siblings, owner, max_objects)
        for kind, siblings in kinds.items()
        if kind in large_kinds
    )
    return tuple(branch for branch in ordered if branch.leaf.key.kind not in large_kinds), groups


def _sort_key(branch: TreeBranch) -> tuple[bool, bool, int, ResourceKey]:
    leaf = branch.leaf
    return leaf.is_orphan, branch.problems == 0, leaf.wave or 0, leaf.key
