"""`argosy app …`: Applications as Argo CD's command knows them, with no server in between."""

from __future__ import annotations

import argparse

from argosy.cli.app_changing import add_changing
from argosy.cli.app_content import add_content
from argosy.cli.app_holding import add_holding
from argosy.cli.app_objects import add_objects
from argosy.cli.app_patching import add_patching
from argosy.cli.app_reading import add_reading
from argosy.cli.app_syncing import add_syncing

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


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "app",
        help="list, sync, compare and change Applications",
        description="Applications as Argo CD's command knows them; the engine delivers them: argosy controller.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    for add in (add_reading, add_syncing, add_holding, add_content, add_objects, add_changing, add_patching):
        add(parts)
