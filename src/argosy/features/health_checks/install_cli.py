"""`argosy health apply|verify|export`: install health checks into an Argo CD, verify and export them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.cli.prompts import read_line
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.tables import TerminalOutput, drop_control_characters
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.health_checks.apply_verify_export_service import HealthInstallOptions, StepOutput

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES_BY_COMMAND = {
    "apply": [
        "argosy health apply",
        "argosy health apply --dry-run",
        "argosy health apply --force --kinds isvc,servingruntime,trainedmodel --profile lenient",
    ],
    "verify": ["argosy health verify", "argosy health verify -o json"],
    "export": [
        "argosy health export --as cr > argocd-cr.yaml",
        "argosy health export --as configmap -n argocd | kubectl apply -f -",
        "argosy health export --as ansible > group_vars/all/health-checks.yaml",
    ],
}
DEFAULT_KIND_NAMES = "InferenceService,ServingRuntime"


def add_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    _add_apply(parts)
    _add_verify(parts)
    _add_export(parts)


def _add_apply(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(
        parts, "apply", "install health checks into an Argo CD, and wait until it uses them", run_apply
    )
    parser.add_argument("-f", "--force", action="store_true", help="do not ask before changing existing health checks")
    _add_check_flags(parser)
    _add_argocd_flags(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    help_text = "seconds to wait until argocd-cm holds the checks (default: 120)"
    parser.add_argument("--timeout", type=parse_seconds, default=120.0, metavar="S", help=help_text)
    help_text = "seconds to wait until applications are refreshed (default: 30)"
    parser.add_argument("--settle", type=parse_seconds, default=30.0, metavar="S", help=help_text)
    _add_cluster_flags(parser)


def _add_verify(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(
        parts, "verify", "verify installed health checks, and show the status of applications", run_verify
    )
    _add_kinds_flag(parser, "InferenceService")
    _add_argocd_flags(parser)
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    _add_cluster_flags(parser)


def _add_export(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(parts, "export", "print health checks as YAML for Git; needs no cluster", run_export)
    format_help = "an ArgoCD resource, argocd-cm, or variables for Ansible"
    parser.add_argument("--as", required=True, dest="form", choices=["cr", "configmap", "ansible"], help=format_help)
    _add_check_flags(parser)
    _add_argocd_flags(parser)


def _add_command(
    parts: Commands[argparse.ArgumentParser], name: str, help_text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in EXAMPLES_BY_COMMAND[name]) + "\nSee also: "
        "docs/guides/health-through-the-cr.md\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _add_check_flags(parser: argparse.ArgumentParser) -> None:
    _add_kinds_flag(parser, DEFAULT_KIND_NAMES)
    profile_help = "strict, lenient, argocd, …; a kind without it uses its only rule (default: strict)"
    parser.add_argument("--profile", action="append", default=[], metavar="P", help=profile_help)


def _add_kinds_flag(parser: argparse.ArgumentParser, default_kinds: str) -> None:
    parser.add_argument("--kinds", default="", metavar="K,…", help=f"comma-separated kinds (default: {default_kinds})")


def _add_argocd_flags(parser: argparse.ArgumentParser) -> None:
    help_text = "namespace of Argo CD (default: where the only ArgoCD resource is, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)
    help_text = "name of the ArgoCD resource (default: openshift-gitops, else the only one)"
    parser.add_argument("--name", default="", metavar="CR", help=help_text)


def _add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    from argosy.cli.cluster_flags import add_target_flags

    add_target_flags(parser)


def run_apply(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.health_checks.apply_verify_export_service import ApplyOutcome, ArgoCDNotFound, apply_checks

    options = _read_options(args)
    try:
        outcome = apply_checks(read_target_options(args), options, _print_message, _prompt, _print_target)
    except ArgoCDNotFound as error:
        return _report_not_installed(error)
    return 1 if outcome is ApplyOutcome.NOT_PROPAGATED else 0


def run_verify(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.cli.output import print_data
    from argosy.features.health_checks.apply_verify_export_service import (
        ArgoCDNotFound,
        render_verification,
        verify_checks,
    )

    try:
        verification = verify_checks(read_target_options(args), _read_options(args), _print_target)
    except ArgoCDNotFound as error:
        return _report_not_installed(error)
    if args.output == "text":
        for message in render_verification(verification):
            _print_message(message)
    else:
        print_data(verification.to_wire(), args.output)
    return 0 if verification.is_ok else 1


def run_export(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.apply_verify_export_service import export_checks

    print(export_checks(_read_options(args), args.form), end="")
    return 0


def _read_options(args: argparse.Namespace) -> HealthInstallOptions:
    from argosy.features.health_checks.apply_verify_export_service import HealthInstallOptions

    return HealthInstallOptions(
        kinds=args.kinds,
        profiles=getattr(args, "profile", ()),
        namespace=args.namespace,
        name=args.name,
        is_forced=getattr(args, "force", False),
        is_dry_run=getattr(args, "dry_run", False),
        timeout_seconds=getattr(args, "timeout", 0.0),
        refresh_timeout_seconds=getattr(args, "settle", 0.0),
    )


def _print_message(message: StepOutput) -> None:
    """Print immediately, because the next step may take long."""
    if isinstance(message, str):
        lines = [drop_control_characters(line) for line in message.split("\n")]
    else:
        lines = TerminalOutput(sys.stdout).format_table(message.headings, message.rows)
    for line in lines:
        print(line, flush=True)


def _prompt(question: str) -> str:
    print(question, end=" ", flush=True)
    answer = read_line()
    if not (answer.endswith("\n") and sys.stdin and sys.stdin.isatty()):
        print(flush=True)  # no return key was pressed on this terminal
    if not answer and not (sys.stdin and sys.stdin.isatty()):  # a pipeline must not treat this as success
        raise UserError("no terminal for the prompt, so nothing was written; add --force to continue without a prompt")
    return answer


def _print_target(target: str) -> None:
    print(f"target: {target}", file=sys.stderr, flush=True)


def _report_not_installed(error: Exception) -> int:
    problem, _, advice = str(error).partition("; ")
    print(f"Error: {problem}\nnext: {advice}", file=sys.stderr)
    return 1
