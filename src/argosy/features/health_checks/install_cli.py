"""`argosy health apply|verify|export`: install health checks into an Argo CD, verify and export them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.prompts import read_line
from argosy.cli.tables import Screen, plain
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.health_checks.install_service import Asked, Said

Commands = argparse._SubParsersAction  # the type argparse gives no public name

SHOWN = {
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
USUAL = "InferenceService,ServingRuntime"


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    _add_apply(parts)
    _add_verify(parts)
    _add_export(parts)


def _add_apply(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "apply", "install health checks into an Argo CD, and wait until it uses them", apply)
    parser.add_argument("-f", "--force", action="store_true", help="do not ask before changing existing health checks")
    _add_checks(parser)
    _add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    about = "seconds to wait until argocd-cm holds the checks (default: 120)"
    parser.add_argument("--timeout", type=seconds, default=120.0, metavar="S", help=about)
    about = "seconds to wait until applications are refreshed (default: 30)"
    parser.add_argument("--settle", type=seconds, default=30.0, metavar="S", help=about)
    _add_target(parser)


def _add_verify(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "verify", "verify installed health checks, and show the status of applications", verify)
    _add_kinds(parser, "InferenceService")
    _add_place(parser)
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    _add_target(parser)


def _add_export(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "export", "print health checks as YAML for Git; needs no cluster", export)
    about = "an ArgoCD resource, argocd-cm, or variables for Ansible"
    parser.add_argument("--as", required=True, dest="form", choices=["cr", "configmap", "ansible"], help=about)
    _add_checks(parser)
    _add_place(parser)


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in SHOWN[name]) + "\nSee also: "
        "docs/guides/health-through-the-cr.md\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _add_checks(parser: argparse.ArgumentParser) -> None:
    _add_kinds(parser, USUAL)
    about = "strict, lenient, argocd, …; a kind without it uses its only rule (default: strict)"
    parser.add_argument("--profile", action="append", default=[], metavar="P", help=about)


def _add_kinds(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument("--kinds", default="", metavar="K,…", help=f"comma-separated kinds (default: {usual})")


def _add_place(parser: argparse.ArgumentParser) -> None:
    about = "namespace of Argo CD (default: where the only ArgoCD resource is, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    about = "name of the ArgoCD resource (default: openshift-gitops, else the only one)"
    parser.add_argument("--name", default="", metavar="CR", help=about)


def _add_target(parser: argparse.ArgumentParser) -> None:
    from argosy.cli.target_flags import add_target_flags

    add_target_flags(parser)


def apply(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.health_checks.install_service import NotInstalled, Outcome, apply_checks

    asked = _asked(chosen)
    try:
        outcome = apply_checks(target_options(chosen), asked, _tell, _ask, _tell_target)
    except NotInstalled as error:
        return _not_installed(error)
    return 1 if outcome is Outcome.NOT_PROPAGATED else 0


def verify(chosen: argparse.Namespace) -> int:
    from argosy.cli.output import print_data
    from argosy.cli.target_flags import target_options
    from argosy.features.health_checks.install_service import NotInstalled, told, verify_checks

    try:
        found = verify_checks(target_options(chosen), _asked(chosen), _tell_target)
    except NotInstalled as error:
        return _not_installed(error)
    if chosen.output == "text":
        for said in told(found):
            _tell(said)
    else:
        print_data(found.as_data(), chosen.output)
    return 0 if found.is_well else 1


def export(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.install_service import export_checks

    print(export_checks(_asked(chosen), chosen.form), end="")
    return 0


def _asked(chosen: argparse.Namespace) -> Asked:
    from argosy.features.health_checks.install_service import Asked

    return Asked(
        kinds=chosen.kinds,
        profiles=getattr(chosen, "profile", ()),
        namespace=chosen.namespace,
        name=chosen.name,
        is_forced=getattr(chosen, "force", False),
        is_rehearsal=getattr(chosen, "dry_run", False),
        timeout=getattr(chosen, "timeout", 0.0),
        settle=getattr(chosen, "settle", 0.0),
    )


def _tell(said: Said) -> None:
    """Print immediately, because the next step may take long."""
    if isinstance(said, str):
        lines = [plain(line) for line in said.split("\n")]
    else:
        lines = Screen(sys.stdout).table(said.headings, said.rows)
    for line in lines:
        print(line, flush=True)


def _ask(question: str) -> str:
    print(question, end=" ", flush=True)
    answer = read_line()
    if not (answer.endswith("\n") and sys.stdin and sys.stdin.isatty()):
        print(flush=True)  # no return key was pressed on this terminal
    if not answer and not (sys.stdin and sys.stdin.isatty()):  # a pipeline must not treat this as success
        raise UserError("no terminal for the prompt, so nothing was written; add --force to continue without a prompt")
    return answer


def _tell_target(where: str) -> None:
    print(f"target: {where}", file=sys.stderr, flush=True)


def _not_installed(error: Exception) -> int:
    what, _, advice = str(error).partition("; ")
    print(f"Error: {what}\nnext: {advice}", file=sys.stderr)
    return 1
