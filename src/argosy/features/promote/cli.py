"""`argosy promote status|plan|run|rollback|approve|reject|hold|resume|history|graph`: the command line."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import report_error
from argosy.cli.slow_step_progress import show_progress_if_slow
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_message
from argosy.cli.tables import drop_control_characters
from argosy.errors import ArgosyError
from argosy.features.promote.read_cli import run_graph, run_history, run_plan, run_status
from argosy.features.promote.write_cli import run_approval, run_hold, run_promotion, run_rollback

if TYPE_CHECKING:
    from argosy.features.promote.service import PromotionSession

Commands = argparse._SubParsersAction  # the type argparse gives no public name
SessionCommand = Callable[["PromotionSession", argparse.Namespace], int]

EXAMPLES = """\
Examples:
  argosy promote status
  argosy promote plan --to staging
  argosy promote run --to staging

See also: docs/guides/promoting.md
"""
SEE_ALSO = "See also: docs/guides/promoting.md, docs/reference/cli.md"
VERBS = "status|plan|run|rollback|approve|reject|hold|resume|history|graph"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "promote",
        help="take a release from one environment to the next, through gates",
        description="Git defines the release, gates decide whether it may be promoted; a promotion is a commit.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar=VERBS, required=True)
    description = "show the release of each environment and the next promotion"
    _add_command(parts, "status", description, run_status, ["status", "status -o json"])
    description = "show the changes, the values that stay, and which gates are open"
    _add_release_arguments(
        _add_command(parts, "plan", description, run_plan, ["plan --to staging", "plan r42 --to staging"])
    )
    description = "promote a release: one commit, with the gate results in its message"
    run = _add_command(
        parts, "run", description, run_promotion, ["run --to staging", "run r42 --to staging --branch promote-r42"]
    )
    _add_branch_flag(_add_release_arguments(run))
    description = "restore the previous release of an environment, and hold the current one"
    examples = ["rollback production", "rollback production --reason 'wrong answers'"]
    rollback = _add_command(parts, "rollback", description, run_rollback, examples)
    _add_branch_flag(_add_reason_flag(_add_environment_argument(rollback)))
    for word in ("approve", "reject"):
        description = f"{word} a release, as a commit"
        subparser = _add_command(
            parts, word, description, run_approval, [f"{word} --to production", f"{word} r42 --to production"]
        )
        _add_branch_flag(_add_release_arguments(subparser))
    description = "block promotions to an environment until it is resumed"
    _add_branch_flag(
        _add_reason_flag(
            _add_environment_argument(
                _add_command(parts, "hold", description, run_hold, ["hold production --reason 'quarter end'"])
            )
        )
    )
    description = "end a hold, including one from a rollback"
    _add_branch_flag(
        _add_reason_flag(
            _add_environment_argument(_add_command(parts, "resume", description, run_hold, ["resume production"]))
        )
    )
    examples = ["history", "history production"]
    listing = _add_command(parts, "history", "list promotions, approvals and holds", run_history, examples)
    listing.add_argument("environment", nargs="?", default="", metavar="ENV", help="only this environment")
    graph_examples = ["graph", "graph | dot -Tsvg"]
    _add_command(
        parts,
        "graph",
        "print the environments and their gates as a dot graph",
        run_graph,
        graph_examples,
        has_output_flag=False,
    )


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    description: str,
    run_command: SessionCommand,
    examples: list[str],
    *,
    has_output_flag: bool = True,
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, description, [f"promote {example}" for example in examples], see_also=SEE_ALSO)
    description = "a folder of the repository (default: the current folder, else the repository of a running demo)"
    parser.add_argument("--repo", type=Path, metavar="DIR", help=description)
    parser.add_argument(
        "--offline", action="store_true", help="do not contact a cluster; gates that need one stay closed"
    )
    if has_output_flag:
        description = "text (default), json or yaml"
        parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help=description)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_with_session, run_command))
    return parser


def _add_release_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    description = "a release such as r42, or a commit (default: the release of the previous environment)"
    parser.add_argument("release", nargs="?", default="", metavar="RELEASE", help=description)
    parser.add_argument("--release", dest="named", default="", metavar="RELEASE", help="the same, as a flag")
    parser.add_argument("--to", default="", metavar="ENV", help="the target environment (required)")
    description = "skip the previous environment; requires --reason"
    parser.add_argument("--skip", action="append", default=[], metavar="ENV", help=description)
    return _add_reason_flag(parser)


def _add_environment_argument(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("environment", metavar="ENV", help="the environment")
    return parser


def _add_reason_flag(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, kept in the history")
    return parser


def _add_branch_flag(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    description = "commit to a new branch, for a pull request (default: the current branch)"
    parser.add_argument("--branch", default="", metavar="NAME", help=description)
    return parser


def _run_with_session(run_command: SessionCommand, args: argparse.Namespace) -> int:
    from argosy.cli.application_service_connection import build_service_opener, find_demo_repository
    from argosy.features.promote.service import open_session

    try:
        options = read_target_options(args)
        demo = partial(find_demo_repository, options)
        session_context = open_session(
            args.repo, build_service_opener(options), demo, is_offline=args.offline, log=print_message
        )
        with show_progress_if_slow("reading the cluster and checking the files"), session_context as promotion_session:
            for note in promotion_session.uncommitted_edit_notes:
                print_message(f"note: {drop_control_characters(note)}")
            return run_command(promotion_session, args)
    except ArgosyError as error:
        return report_error(error, f"promote {args.part} failed")
