"""`argosy proj list|get`; also registers the other `proj` commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.verbs import at_desk, form, print_data
from argosy.features.projects.cli_flags import Commands, verb
from argosy.features.projects.edit_cli import add_changing
from argosy.features.projects.windows_cli import add_windows

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.kube.objects import Manifest

EXAMPLES = """\
Examples:
  argosy proj list
  argosy proj get ml
  argosy proj create ml --src https://git.example/ml --dest https://kubernetes.default.svc,ml
  argosy proj windows list ml

See also: docs/guides/deliver.md
"""
HEADINGS = (
    "NAME", "DESCRIPTION", "DESTINATIONS", "SOURCES", "CLUSTER-RESOURCE-WHITELIST", "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS", "ORPHANED-RESOURCES", "DESTINATION-SERVICE-ACCOUNTS",
)  # fmt: skip
NONE = "<none>"
WIDTH = 29  # argo: width of labels in `proj get`
FORMS = ("wide", "name", "json", "yaml")


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("proj", help="list and change projects", epilog=EXAMPLES, description="Projects.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    verb(parts, "list", "list projects", run_list, named=(), forms=FORMS, examples=("list", "list -o name"))
    verb(
        parts, "get", "show a project", run_get, forms=("wide", "json", "yaml"), examples=("get ml", "get ml -o yaml")
    )  # fmt: skip
    add_changing(parts)
    add_windows(parts)


def run_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.cli.tables import aligned
        from argosy.gitops.application_client.projects import projects_of

        found, how = await projects_of(desk), form(chosen, "wide")
        if how in ("json", "yaml"):
            print_data(found if how == "json" else {"items": found}, how)
        elif how == "name":
            print("".join(f"{each['metadata']['name']}\n" for each in found), end="")
        else:
            print("\n".join(aligned([HEADINGS, *map(_row, found)])))
        return 0

    return at_desk(chosen, work)


def run_get(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.projects import project_named

        found, how = await project_named(desk, chosen.project), form(chosen, "wide")
        if how in ("json", "yaml"):
            print_data(found, how)
        else:
            print("\n".join(_lines(found)))
        return 0

    return at_desk(chosen, work)


def _lines(project: Manifest) -> list[str]:
    """argo: labels, with list entries on separate lines."""
    spec: dict[str, Any] = project.get("spec") or {}
    keys = ", ".join(str(each.get("keyID")) for each in _list(spec, "signatureKeys"))
    return [
        _field("Name:", project["metadata"]["name"]),
        _field("Description:", str(spec.get("description") or "")),
        *_fields("Destinations:", _places(spec)),
        *_fields("Repositories:", _list(spec, "sourceRepos")),
        *_fields("Source Namespaces:", _list(spec, "sourceNamespaces")),
        *_fields("Scoped Repositories:", []),
        *_fields("Allowed Cluster Resources:", _kinds(spec, "clusterResourceWhitelist")),
        *_fields("Scoped Clusters:", []),
        *_fields("Denied Namespaced Resources:", _kinds(spec, "namespaceResourceBlacklist")),
        _field("Signature keys:", keys or NONE),
        _field("Orphaned Resources:", _orphans(spec.get("orphanedResources"))),
    ]


def _field(label: str, value: str) -> str:
    return f"{label:<{WIDTH}}{value}".rstrip()


def _fields(label: str, values: Sequence[Any]) -> list[str]:
    first, *more = values or [NONE]
    return [_field(label, str(first)), *(_field("", str(each)) for each in more)]


def _row(project: Manifest) -> tuple[str, ...]:
    """argo: a single entry is shown, several are counted; denied kinds are always counted."""
    spec: dict[str, Any] = project.get("spec") or {}
    denied, keys = _list(spec, "namespaceResourceBlacklist"), _list(spec, "signatureKeys")
    accounts = [
        f"{each.get('server')},{each.get('namespace')},{each.get('defaultServiceAccount')}"
        for each in _list(spec, "destinationServiceAccounts")
    ]
    return (
        project["metadata"]["name"],
        str(spec.get("description") or ""),
        _counted(_places(spec), "destinations"),
        _counted([str(each) for each in _list(spec, "sourceRepos")], "repos"),
        _counted(_kinds(spec, "clusterResourceWhitelist"), "resources"),
        f"{len(denied)} resources" if denied else NONE,
        f"{len(keys)} key(s)" if keys else NONE,
        _orphans(spec.get("orphanedResources")),
        _counted(accounts, "destinationServiceAccounts"),
    )


def _places(spec: dict[str, Any]) -> list[str]:
    return [f"{each.get('server') or each.get('name')},{each.get('namespace')}" for each in _list(spec, "destinations")]


def _kinds(spec: dict[str, Any], name: str) -> list[str]:
    return [f"{each.get('group') or ''}/{each.get('kind')}" for each in _list(spec, name)]


def _list(spec: dict[str, Any], name: str) -> list[Any]:
    found = spec.get(name)
    return found if isinstance(found, list) else []


def _counted(found: list[str], noun: str) -> str:
    if not found:
        return NONE
    return found[0] if len(found) == 1 else f"{len(found)} {noun}"


def _orphans(rule: Any) -> str:
    if not isinstance(rule, dict):
        return "disabled"
    ignored = rule.get("ignore") or []
    return f"enabled (warn={str(rule.get('warn', True)).lower()}{f', ignored {len(ignored)}' if ignored else ''})"
