"""Render an Application exactly as the argocd command prints it.

In: an Application, its sync windows. Out: lines. Never: lines that argocd does not print, as scripts parse them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.cli.tables import aligned
from argosy.features.applications.read.text_output import condition_lines, policy_word, tool_lines
from argosy.gitops.application import Application, Source
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.summary import Row
from argosy.gitops.application_client.tree_order import Branch, branches
from argosy.gitops.live.resource_tree import Node
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey

WIDTH: Final = 20
LONGEST_VALUE: Final = 80
RESOURCES: Final = ("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED")
TREE: Final = ("KIND/NAME", "STATUS", "HEALTH", "MESSAGE")
TREE_DETAILED: Final = ("KIND/NAME", "STATUS", "HEALTH", "AGE", "MESSAGE", "REASON")
HEX: Final = frozenset("0123456789abcdef")


def field(name: str, value: str) -> str:
    return f"{name:<{WIDTH}}{value}"


def block(app: Application, window: str, *, url: str, windows: Sequence[str] = ()) -> list[str]:
    destination = app.destination
    lines = [
        field("Name:", f"{app.namespace}/{app.name}"),
        field("Project:", app.project),
        field("Server:", destination.server or destination.name),
        field("Namespace:", destination.namespace),
        field("URL:", url),
        "Sources:" if app.has_many_sources else "Source:",
    ]
    for source in app.sources:
        lines += _source(source)
    lines.append(field("SyncWindow:", window))
    lines += [field("Assigned Windows:", ",".join(windows))] if windows else []
    lines.append(field("Sync Policy:", policy_word(app)))
    lines.append(field("Sync Status:", _sync(app)))
    lines.append(field("Health Status:", summary.health_word(app)))
    return lines


def _source(source: Source) -> list[str]:
    lines = [field("- Repo:", source.repo_url), field("  Target:", str(source.wire.get("targetRevision") or ""))]
    lines += [field("  Path:", source.path)] if source.path else []
    lines += [field("  Ref:", source.alias)] if source.alias else []
    return lines + tool_lines(source.wire)


def _sync(app: Application) -> str:
    """argo: Shows only the first source; adds the commit unless the target revision is a commit."""
    word = summary.sync_word(app)
    ref = str(app.sources[0].wire.get("targetRevision") or "") if app.sources else ""
    between = {"Synced": " to ", "OutOfSync": " from "}.get(word)
    text = f"{word}{between}{ref}" if between else word
    revision = str(mapping(app.status.get("sync")).get("revision") or "")
    is_commit = len(ref) in (7, 40) and set(ref.lower()) <= HEX
    return f"{text} ({revision[:7]})" if len(revision) > 7 and not is_commit else text


def states(app: Application, health: Mapping[ResourceKey, str]) -> list[Row]:
    """argo: Results of the last operation in their order, then the other objects by name."""
    found = {row.key: row for row in summary.rows(app, health) if not row.hook}
    there = {_key(each) for each in mappings(app.status.get("resources"))}
    rows = []
    for result in app.state.results if app.state else ():
        row = found.pop(result.key, None)
        if row is None or result.hook or result.key not in there:
            phase = result.progress.value if result.progress else ""
            row = Row(result.key, phase, str(result.outcome or ""), result.hook)
        rows.append(row._replace(message=result.message))
    rest = sorted(found.values(), key=lambda row: "/".join(row.key))
    return rows + [row._replace(message="") for row in rest]


def _key(wire: Mapping[str, Any]) -> ResourceKey:
    return ResourceKey(*(str(wire.get(part) or "") for part in ResourceKey._fields))


def tree(app: Application, nodes: Sequence[Node], *, is_detailed: bool) -> list[str]:
    """argo: Managed objects with their children."""
    states_of = {row.key: row for row in summary.rows(app)}
    rows = []
    for branch in branches(nodes):
        node, row = branch.node, states_of.get(branch.node.key)
        health = node.health.health.value if node.health and node.health.health else ""
        message = row.message if row else ""
        cells = [f"{lead(branch)}{node.key.kind}/{node.key.name}", row.status if row else "", health]
        if is_detailed:
            reason = node.health.message if node.health else ""
            cells += [summary.age(node.created, clock()) or "<unknown>", message, reason]
        else:
            cells.append(message)
        rows.append(cells)
    head = TREE_DETAILED if is_detailed else TREE
    return aligned([head, *rows])


def resource_tree(nodes: Sequence[Node], orphans: Sequence[ResourceKey], *, is_detailed: bool) -> list[str]:
    """argo: The branch prefix precedes the group."""
    rows: list[tuple[str, ...]] = []
    for branch in branches(nodes):
        node, key = branch.node, branch.node.key
        health = node.health.health.value if node.health and node.health.health else ""
        more = (summary.age(node.created, clock()) or "<unknown>", health, node.health.message if node.health else "")
        rows.append((f"{lead(branch)}{key.group}", key.kind, key.namespace, key.name, "No", *(more[: 3 * is_detailed])))
    rows += [(*key, "Yes", *(("<unknown>", "", "")[: 3 * is_detailed])) for key in orphans]
    return aligned([RESOURCES + (("AGE", "HEALTH", "REASON") if is_detailed else ()), *rows])


def lead(branch: Branch) -> str:
    """argo: Two characters per level."""
    if not branch.is_last:
        return ""
    *above, last = branch.is_last
    return "".join("  " if each else "│ " for each in above) + ("└─" if last else "├─")


def conditions(app: Application) -> list[str]:
    found = condition_lines(app)
    return [*found, ""] if found else []


def parameters(app: Application, position: int | None, name: str) -> list[str]:
    """argo: The Helm parameters of the only source or of the selected source."""
    helm = mapping(_asked(app, position, name).get("helm"))
    if not helm:
        return []
    found = mappings(helm.get("parameters"))
    rows = [(str(each.get("name") or ""), _cut(str(each.get("value") or ""))) for each in found]
    return ["", "", *aligned([("NAME", "VALUE"), *rows])]


def _asked(app: Application, position: int | None, name: str) -> Mapping[str, Any]:
    if len(app.sources) == 1:
        return app.sources[0].wire
    if name:
        return next((each.wire for each in app.sources if each.wire.get("name") == name), {})
    return app.sources[position - 1].wire if position and 1 <= position <= len(app.sources) else {}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
