"""`argosy init DIR`: create a new repository."""

from __future__ import annotations

import argparse
from pathlib import Path

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy init models
  argosy init models --name fraud --repo-url https://github.com/acme/fraud.git

See also: docs/guides/new-repository.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "init",
        help="create a repository with a model, three environments and checks",
        description="Creates a Git repository with a model, three environments, a notebook and checks before a merge.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder")
    help_text = "name prefix of Applications and namespaces (default: llmops)"
    parser.add_argument("--name", default="llmops", metavar="NAME", help=help_text)
    help_text = "URL to push the repository to; Argo CD reads it from there (default: a placeholder)"
    parser.add_argument("--repo-url", default="", metavar="URL", help=help_text)
    parser.add_argument("--no-commit", action="store_true", help="do not create the first commit")
    parser.set_defaults(run=run_init)


def run_init(args: argparse.Namespace) -> int:
    from argosy.features.init.service import initialize

    new_repository = initialize(args.folder, args.name, args.repo_url, is_committed=not args.no_commit)
    print(new_repository.render_report(), end="")
    return 0
