"""`argosy app …`: commands compatible with `argocd app` that talk to the cluster without a server."""

from __future__ import annotations

import argparse
import importlib
from typing import Final

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy app list
  argosy app get models
  argosy app diff models
  argosy app sync models
  argosy app wait models --health --timeout 300
  argosy app rollback models 3 --hold

See also: docs/guides/deliver.md
"""
# Module → its verbs. Imports take time, so a command loads only the module of its own verb.
VERBS_BY_MODULE: Final = {
    "argosy.features.applications.read.cli": ("list", "get", "resources", "tree", "history", "events"),
    "argosy.features.applications.sync.cli": ("sync",),
    "argosy.features.applications.rollback.cli": ("rollback",),
    "argosy.features.applications.sync.wait_cli": ("wait",),
    "argosy.features.applications.refresh_hold_terminate_delete.cli": (
        "hold",
        "release",
        "refresh",
        "terminate-op",
        "confirm-deletion",
        "delete",
    ),
    "argosy.features.applications.adopt_from_argocd.cli": ("adopt", "hand-back"),
    "argosy.features.applications.diff.cli": ("diff", "manifests", "actions"),
    "argosy.features.applications.logs.cli": ("logs",),
    "argosy.features.applications.objects.cli": ("get-resource", "patch-resource", "delete-resource"),
    "argosy.features.applications.edit.cli": ("create", "set", "unset"),
    "argosy.features.applications.edit.patch_and_sources_cli": ("patch", "edit", "add-source", "remove-source"),
}


def add_commands(commands: Commands[argparse.ArgumentParser], typed: str = "") -> None:
    parser = commands.add_parser(
        "app",
        help="list, sync, compare and change Applications",
        description="Commands compatible with `argocd app`. The controller delivers Applications: argosy controller.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    for name in [name for name, verbs in VERBS_BY_MODULE.items() if typed in verbs] or VERBS_BY_MODULE:
        importlib.import_module(name).add_commands(parts)
