"""The tree of an Application as nested values: ownership, state, and what is wrong, with large groups folded.

In: nodes, rows of the status, what each says. Out: Branch values. Never: asks a cluster; a ring of owners walked twice.
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

MOST_BESIDE = 20  # siblings of one kind that are shown unfolded
MOST_SENT = 60  # of a group
MOST_SENT_BELOW = 10  # of a group below something
MOST_LEAVES = 200  # of all groups together, with what is below
LEAST_LEAVES = 50
ILL = frozenset({"Degraded", "Missing", "Unknown"})
UNEASY = ILL | {"Progressing", "Suspended"}


@dataclass(frozen=True, slots=True)
class Leaf(Keyed):
    """One object. `status` is empty for what only came of others."""

    key: ResourceKey
    id: str
    app: tuple[str, str] | None = None  # whose it is: namespace and name
    status: str = ""
    health: str = ""
    message: str = ""
    wave: int | None = None
    created: str = ""
    hook: str = ""
    is_orphan: bool = False
    is_pruned: bool = False  # lives, and Git does not have it
    info: tuple[tuple[str, str], ...] = ()

    @property
    def url(self) -> str:
        """Made when it is shown: of thousands most are not."""
        return of_resource(*self.app, self.key) if self.app else ""

    @property
    def is_problem(self) -> bool:
        return self.health in UNEASY or self.status in ("OutOfSync", "SyncFailed", "Failed", "Error")


@dataclass(frozen=True, slots=True)
class Group:
    """Many siblings of one kind, folded; of very many a part, and where the others are."""

    kind: str
    count: int
    problems: int
    branches: tuple[Branch, ...]
    id: str = ""
    first: int = 0  # the place of the first that is shown
    start: str = ""  # the address of the first ones, where these are others
    after: str = ""  # and of those that come next
    is_open: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.branches)


@dataclass(frozen=True, slots=True)
class Branch:
    leaf: Leaf
    below: tuple[Branch, ...] = ()
    groups: tuple[Group, ...] = ()
    problems: int = 0  # here and below
    size: int = 1  # how many of them are sent

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
        """All that is sent."""
        waiting = [*self.branches, *(each for group in self.groups for each in group.branches)]
        while waiting:
            branch = waiting.pop()
            yield branch.leaf
            waiting += [*branch.below, *(each for group in branch.groups for each in group.branches)]


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of which group is looked at, and the address of any other."""

    group: str = ""
    first: int = 0
    address: Callable[[str, int], str] = lambda group, first: ""

    def of(self, kind: str, branches: Sequence[Branch], owner: str, most: int) -> Group:
        """`most`: objects that may be sent, with what is below them."""
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
    """argo: a message is what apply said; that tells nothing of how it is now, but where it failed."""
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
    """All that it manages, lives of it, or is left over beside it. `app`: its namespace and name."""
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
    """Parents before their children; problems first. What is asked for is shown with all that is above it."""
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
    """Problems first, then by wave, kind and name; more than a few of a kind become a group."""
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
