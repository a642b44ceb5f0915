"""`argosy app …`: Applications as Argo CD's command knows them, with no server in between."""

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
# `argosy.cli.app_reading` adds its verbs with `add_reading`, and so on. Each takes time to import and to build: of a
# verb that is typed only its own module is.
MODULES: Final = {
    "reading": ("list", "get", "resources", "tree", "history", "events"),
    "syncing": ("sync",),
    "rollback": ("rollback",),
    "waiting": ("wait",),
    "holding": ("hold", "release", "refresh", "terminate-op", "confirm-deletion", "delete"),
    "adopting": ("adopt", "hand-back"),
    "content": ("diff", "manifests", "actions"),
    "logs": ("logs",),
    "objects": ("get-resource", "patch-resource", "delete-resource"),
    "changing": ("create", "set", "unset"),
    "patching": ("patch", "edit", "add-source", "remove-source"),
}


def add_to(commands: Commands[argparse.ArgumentParser], typed: str = "") -> None:
    parser = commands.add_parser(
        "app",
        help="list, sync, compare and change Applications",
        description="Applications as Argo CD's command knows them; the engine delivers them: argosy controller.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    for name in [name for name, verbs in MODULES.items() if typed in verbs] or MODULES:
        getattr(importlib.import_module(f"argosy.cli.app_{name}"), f"add_{name}")(parts)
