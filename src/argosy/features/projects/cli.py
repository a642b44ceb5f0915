"""`argosy proj list|get`; also registers the other `proj` commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.subcommand_flags_and_runner import choose_output, print_document, run_with_service
from argosy.features.projects.edit_cli import add_edit_commands
from argosy.features.projects.proj_subcommand_builder import Commands, add_command
from argosy.features.projects.windows_cli import add_window_commands

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
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
NONE_TEXT = "<none>"
LABEL_WIDTH = 29  # argo: width of labels in `proj get`
OUTPUT_FORMATS = ("wide", "name", "json", "yaml")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("proj", help="list and change projects", epilog=EXAMPLES, description="Projects.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    add_command(
        parts,
        "list",
        "list projects",
        run_list,
        arguments=(),
        output_formats=OUTPUT_FORMATS,
        examples=("list", "list -o name"),
    )
    add_command(
        parts,
        "get",
        "show a project",
        run_get,
        output_formats=("wide", "json", "yaml"),
        examples=("get ml", "get ml -o yaml"),
    )
    add_edit_commands(parts)
    add_window_commands(parts)


def run_list(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.cli.tables import format_aligned_columns
        from argosy.gitops.application_client.appproject_operations import projects_of

        projects, output = await projects_of(app_service), choose_output(args, "wide")
        if output in ("json", "yaml"):
            print_document(projects if output == "json" else {"items": projects}, output)
        elif output == "name":
            print("".join(f"{project['metadata']['name']}\n" for project in projects), end="")
        else:
            print("\n".join(format_aligned_columns([HEADINGS, *map(_build_row, projects)])))
        return 0

    return run_with_service(args, work)


def run_get(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.gitops.application_client.appproject_operations import load_project

        project, output = await load_project(app_service, args.project), choose_output(args, "wide")
        if output in ("json", "yaml"):
            print_document(project, output)
        else:
            print("\n".join(_render_project(project)))
        return 0

    return run_with_service(args, work)


def _render_project(project: Manifest) -> list[str]:
    """argo: labels, with list entries on separate lines."""
    spec: dict[str, Any] = project.get("spec") or {}
    keys = ", ".join(str(key.get("keyID")) for key in _get_list(spec, "signatureKeys"))
    return [
        _format_field("Name:", project["metadata"]["name"]),
        _format_field("Description:", str(spec.get("description") or "")),
        *_format_fields("Destinations:", _list_destinations(spec)),
        *_format_fields("Repositories:", _get_list(spec, "sourceRepos")),
        *_format_fields("Source Namespaces:", _get_list(spec, "sourceNamespaces")),
        *_format_fields("Scoped Repositories:", []),
        *_format_fields("Allowed Cluster Resources:", _list_kinds(spec, "clusterResourceWhitelist")),
        *_format_fields("Scoped Clusters:", []),
        *_format_fields("Denied Namespaced Resources:", _list_kinds(spec, "namespaceResourceBlacklist")),
        _format_field("Signature keys:", keys or NONE_TEXT),
        _format_field("Orphaned Resources:", _describe_orphan_monitoring(spec.get("orphanedResources"))),
    ]


def _format_field(label: str, value: str) -> str:
    return f"{label:<{LABEL_WIDTH}}{value}".rstrip()


def _format_fields(label: str, values: Sequence[Any]) -> list[str]:
    first, *more = values or [NONE_TEXT]
    return [_format_field(label, str(first)), *(_format_field("", str(value)) for value in more)]


def _build_row(project: Manifest) -> tuple[str, ...]:
    """argo: a single entry is shown, several are counted; denied kinds are always counted."""
    spec: dict[str, Any] = project.get("spec") or {}
    denied, keys = _get_list(spec, "namespaceResourceBlacklist"), _get_list(spec, "signatureKeys")
    accounts = [
        f"{item.get('server')},{item.get('namespace')},{item.get('defaultServiceAccount')}"
        for item in _get_list(spec, "destinationServiceAccounts")
    ]
    return (
        project["metadata"]["name"],
        str(spec.get("description") or ""),
        _summarize(_list_destinations(spec), "destinations"),
        _summarize([str(item) for item in _get_list(spec, "sourceRepos")], "repos"),
        _summarize(_list_kinds(spec, "clusterResourceWhitelist"), "resources"),
        f"{len(denied)} resources" if denied else NONE_TEXT,
        f"{len(keys)} key(s)" if keys else NONE_TEXT,
        _describe_orphan_monitoring(spec.get("orphanedResources")),
        _summarize(accounts, "destinationServiceAccounts"),
    )


def _list_destinations(spec: dict[str, Any]) -> list[str]:
    return [
        f"{destination.get('server') or destination.get('name')},{destination.get('namespace')}"
        for destination in _get_list(spec, "destinations")
    ]


def _list_kinds(spec: dict[str, Any], name: str) -> list[str]:
    return [f"{item.get('group') or ''}/{item.get('kind')}" for item in _get_list(spec, name)]


def _get_list(spec: dict[str, Any], name: str) -> list[Any]:
    value = spec.get(name)
    return value if isinstance(value, list) else []


def _summarize(items: list[str], noun: str) -> str:
    if not items:
        return NONE_TEXT
    return items[0] if len(items) == 1 else f"{len(items)} {noun}"


def _describe_orphan_monitoring(rule: Any) -> str:
    if not isinstance(rule, dict):
        return "disabled"
    ignored = rule.get("ignore") or []
    return f"enabled (warn={str(rule.get('warn', True)).lower()}{f', ignored {len(ignored)}' if ignored else ''})"
