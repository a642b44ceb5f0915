"""`argosy proj list`: the projects of an installation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.app_flags import at_desk, form, print_data
from argosy.cli.target_flags import add_target_flags

if TYPE_CHECKING:
    from argosy.app.applications.desk import Desk
    from argosy.model.manifest import Manifest

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy proj list
  argosy proj list -o name

See also: docs/guides/deliver.md
"""
HEADINGS = (
    "NAME", "DESCRIPTION", "DESTINATIONS", "SOURCES", "CLUSTER-RESOURCE-WHITELIST", "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS", "ORPHANED-RESOURCES",
)  # fmt: skip
NONE = "<none>"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("proj", help="list projects", epilog=EXAMPLES, description="Projects.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    parser = parts.add_parser("list", help="list projects", epilog=EXAMPLES, description="List projects.",
                              formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    forms = ("wide", "name", "json", "yaml")
    parser.add_argument("-o", "--output", choices=forms, default="", help=f"{', '.join(forms)} (default: wide)")
    about = "where the projects are (default: the control namespace)"
    parser.add_argument("-N", "--app-namespace", default="", metavar="NS", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=run_list)


def run_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.app.applications.projects import projects_of
        from argosy.cli.app_screen import aligned

        found, how = await projects_of(desk), form(chosen, "wide")
        if how in ("json", "yaml"):
            print_data(found if how == "json" else {"items": found}, how)
        elif how == "name":
            print("".join(f"{each['metadata']['name']}\n" for each in found), end="")
        else:
            print("\n".join(aligned([HEADINGS, *map(_row, found)])))
        return 0

    return at_desk(chosen, work)


def _row(project: Manifest) -> tuple[str, ...]:
    """argo: one of each is shown, several are counted."""
    spec: dict[str, Any] = project.get("spec") or {}
    destinations = _list(spec, "destinations")
    places = [f"{each.get('server') or each.get('name')},{each.get('namespace')}" for each in destinations]
    return (
        project["metadata"]["name"],
        str(spec.get("description") or ""),
        _counted(places, "destinations"),
        _counted([str(each) for each in _list(spec, "sourceRepos")], "repos"),
        _counted([f"{each.get('group')}/{each.get('kind')}" for each in _list(spec, "clusterResourceWhitelist")],
                 "resources"),
        _counted([f"{each.get('group')}/{each.get('kind')}" for each in _list(spec, "namespaceResourceBlacklist")],
                 "resources"),
        _counted([str(each.get("keyID")) for each in _list(spec, "signatureKeys")], "key(s)"),
        _orphans(spec.get("orphanedResources")),
    )  # fmt: skip


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
