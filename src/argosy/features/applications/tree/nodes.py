"""The resource tree of an Application as nested template values, with large groups folded.

In: nodes, rows of the status, reasons. Out: ApplicationTree. Never: calls a cluster; loops on cyclic owner references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from argosy.features.applications.page_parts.addresses import element_of, of_resource
from argosy.features.applications.page_parts.keyed_values import Keyed
from argosy.gitops.application import Application
from argosy.gitops.application_client.summary import Row
from argosy.gitops.application_client.summary import rows as rows_of
from argosy.gitops.live.resource_tree import Node
from argosy.kube.names import ResourceKey

MOST_BESIDE = 20  # siblings of one kind shown without a group
MOST_SENT = 60  # objects of a top-level group
MOST_SENT_BELOW = 10  # objects of a nested group
MOST_LEAVES = 200  # objects of all groups, with their descendants
LEAST_LEAVES = 50
ILL = frozenset({"Degraded", "Missing", "Unknown"})
UNEASY = ILL | {"Progressing", "Suspended"}


@dataclass(frozen=True, slots=True)
class Leaf(Keyed):
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
        return of_resource(*self.app, self.key) if self.app else ""

    @property
    def is_problem(self) -> bool:
        return self.health in UNEASY or self.status in ("OutOfSync", "SyncFailed", "Failed", "Error")


@dataclass(frozen=True, slots=True)
class Group:
    """Many siblings of one kind, folded; large groups are paged."""

    kind: str
    count: int
    problems: int
    branches: tuple[Branch, ...]
    id: str = ""
    first: int = 0  # index of the first branch shown
    start: str = ""  # URL of the first page, if this is another one
    after: str = ""  # URL of the next page
    is_open: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.branches)


@dataclass(frozen=True, slots=True)
class Branch:
    leaf: Leaf
    below: tuple[Branch, ...] = ()
    groups: tuple[Group, ...] = ()
    problems: int = 0  # of this object and its descendants
    size: int = 1  # number of objects sent

    @property
    def is_open(self) -> bool:
        return self.problems > 0 or len(self.below) <= 3


@dataclass(frozen=True, slots=True)
class Tree:
    branches: tuple[Branch, ...]
    groups: tuple[Group, ...]
    total: int
    problems: int
    kinds: tuple[str, ...] = ()

    def shown(self) -> Iterator[Leaf]:
        """Yield every object that is sent to the browser."""
        waiting = [*self.branches, *(each for group in self.groups for each in group.branches)]
        while waiting:
            branch = waiting.pop()
            yield branch.leaf
            waiting += [*branch.below, *(each for group in branch.groups for each in group.branches)]


@dataclass(frozen=True, slots=True)
class Window:
    """The page of the group that is open, and the URLs of other pages."""

    group: str = ""
    first: int = 0
    address: Callable[[str, int], str] = lambda group, first: ""

    def of(self, kind: str, branches: Sequence[Branch], owner: str, most: int) -> Group:
        """`max_objects` limits the objects sent, including descendants."""
        name = f"{owner}:{kind}" if owner else kind
        is_open = name == self.group
        first = self.first if is_open and self.first < len(branches) else 0
        shown: list[Branch] = []
        for each in branches[first : first + (MOST_SENT_BELOW if owner else MOST_SENT)]:
            most -= each.size
            if shown and most < 0:
                break
            shown.append(each)
        last = first + len(shown)
        return Group(
            kind,
            len(branches),
            sum(each.problems > 0 for each in branches),
            tuple(shown),
            name,
            first,
            self.address(name, 0) if first else "",
            self.address(name, last) if last < len(branches) else "",
            is_open,
        )


def told_rows(app: Application, health: Mapping[ResourceKey, str] | None = None) -> list[Row]:
    """argo: A message is from apply, so it is kept only for failures, hooks and objects to prune."""
    results = app.state.results if app.state else ()
    failed = {each.key for each in results if each.outcome == "SyncFailed" or each.progress in ("Failed", "Error")}
    return [
        row if row.key in failed or row.hook or "requires pruning" in row.message else row._replace(message="")
        for row in rows_of(app, health)
    ]


def leaves(
    nodes: Sequence[Node],
    rows: Sequence[Row],
    said: Mapping[ResourceKey, str],
    app: tuple[str, str],
    orphans: Iterable[ResourceKey] = (),
) -> dict[ResourceKey, Leaf]:
    """Build managed, live and orphaned objects. `app` is namespace and name of the Application."""
    told = {row.key: row for row in rows}
    found = {node.key: _leaf(node, told.get(node.key), said.get(node.key, ""), app) for node in nodes}
    for row in rows:
        if row.key not in found:
            health = row.health or ("" if row.hook else "Missing")
            found[row.key] = Leaf(
                row.key, element_of(row.key), app, row.status, health, row.message, row.wave, hook=row.hook
            )
    for key in orphans:
        found.setdefault(key, Leaf(key, element_of(key), is_orphan=True))
    return found


def _leaf(node: Node, row: Row | None, said: str, app: tuple[str, str]) -> Leaf:
    health = node.health.health.value if node.health and node.health.health else ""
    info = tuple((str(name), str(value)) for name, value in node.info if value)
    return Leaf(
        node.key,
        element_of(node.key),
        app,
        row.status if row else "",
        health,
        (said if health != "Healthy" else "") or (row.message if row and row.status not in ("Synced", "") else ""),
        row.wave if row else None,
        node.created,
        row.hook if row else "",
        is_pruned=bool(row and "requires pruning" in row.message),
        info=info,
    )


def grown(
    nodes: Sequence[Node],
    found: Mapping[ResourceKey, Leaf],
    *,
    only_problems: bool = False,
    kind: str = "",
    text: str = "",
    window: Window | None = None,
) -> Tree:
    """Build the tree, problems first. Objects that match the filters are shown with all their ancestors."""
    window = window or Window()
    below: dict[ResourceKey, list[ResourceKey]] = {}
    roots: list[ResourceKey] = []
    parents = {node.key: [each.key for each in node.parents] for node in nodes}
    for key in found:
        above = next((each for each in parents.get(key, ()) if each in found and each != key), None)
        if above is None:
            roots.append(key)
        else:
            below.setdefault(above, []).append(key)

    def is_wanted(leaf: Leaf) -> bool:
        return (
            (not only_problems or leaf.is_problem)
            and (not kind or leaf.key.kind == kind)
            and (not text or text.lower() in f"{leaf.key.kind}/{leaf.key.name}".lower())
        )

    def grow(key: ResourceKey) -> Branch | None:
        leaf = found[key]
        inner = [each for child in below.pop(key, ()) if (each := grow(child)) is not None]
        if not inner and not is_wanted(leaf):
            return None
        shown, groups = _folded(inner, window, leaf.id)
        size = 1 + sum(each.size for each in shown) + sum(each.size for group in groups for each in group.branches)
        return Branch(leaf, shown, groups, leaf.is_problem + sum(each.problems for each in inner), size)

    inner = [each for key in roots if (each := grow(key)) is not None]
    shown, groups = _folded(inner, window)
    kinds = tuple(sorted({key.kind for key in found}))
    return Tree(shown, groups, len(found), sum(leaf.is_problem for leaf in found.values()), kinds)


def _folded(branches: list[Branch], window: Window, owner: str = "") -> tuple[tuple[Branch, ...], tuple[Group, ...]]:
    """Sort by problems, wave, kind and name; fold more than MAX_UNFOLDED_SIBLINGS of a kind into a group."""
    ordered = sorted(branches, key=_order)
    kinds: dict[str, list[Branch]] = {}
    for each in ordered:
        kinds.setdefault(each.leaf.key.kind, []).append(each)
    large = {kind for kind, those in kinds.items() if len(those) > MOST_BESIDE}
    most = max(MOST_LEAVES // max(len(large), 1), LEAST_LEAVES)
    groups = tuple(window.of(kind, those, owner, most) for kind, those in kinds.items() if kind in large)
    return tuple(each for each in ordered if each.leaf.key.kind not in large), groups


def _order(branch: Branch) -> tuple[bool, bool, int, ResourceKey]:
    leaf = branch.leaf
    return leaf.is_orphan, branch.problems == 0, leaf.wave or 0, leaf.key
