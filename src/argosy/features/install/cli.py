"""`argosy install`: print the manifests of argosy, or apply them to a cluster."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.prompts import confirm_plan
from argosy.errors import UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.install.service import InstallCallbacks, InstallOptions, InstallStep, PlannedInstall

NextStepsFunction = Callable[[argparse.Namespace, "PlannedInstall"], list[str]]
Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy install > argosy.yaml
  argosy install --apply --dry-run
  argosy install --apply --ha --image registry.example.com/argosy:0.1.0 --hostname argosy.example.com
  argosy install --namespace argocd --read-only --apply

See also: docs/guides/install.md
"""
VERB_SIGNS = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
VERB_PAST_TENSES = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}
SERVER_DEPLOYMENT = "argosy-server"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "install",
        help="install argosy in a cluster",
        description="Prints the manifests that run argosy in a cluster: controller and server, with the minimal "
        "permissions that they need. With --apply it applies them, after a plan and a confirmation; run it again to "
        "upgrade.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_namespace_flag(parser, "namespace of argosy, its Applications and settings (default: argosy)")
    help_text = "high availability: three sharded controllers and two servers, on different nodes"
    parser.add_argument("--ha", action="store_true", help=help_text)
    help_text = "a read-only server: no controller, and no write permission except for login data"
    parser.add_argument("--read-only", action="store_true", help=help_text)
    parser.add_argument("--image", default="", metavar="REF", help="the image to run (default: argosy:VERSION)")
    help_text = "hostname of the web page; repeatable"
    parser.add_argument("--hostname", action="append", default=[], metavar="NAME", help=help_text)
    help_text = "Secret with tls.crt and tls.key for the web page (default: each server creates a certificate)"
    parser.add_argument("--tls-secret", default="", metavar="NAME", help=help_text)
    parser.add_argument(
        "--apply", action="store_true", help="apply the manifests to the cluster, after a plan and a confirmation"
    )
    add_write_flags(parser, "with --apply: show the plan, and write nothing")
    help_text = "yaml or json: the manifests; with --apply: text, or the plan as yaml or json"
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="", help=help_text)
    add_target_flags(parser)
    parser.set_defaults(run=run_install)


def add_namespace_flag(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)


def add_write_flags(parser: argparse.ArgumentParser, dry_run_help: str) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help=dry_run_help)


def run_install(args: argparse.Namespace) -> int:
    from argosy.features.install import service as in_cluster

    options = _read_options(args)
    if not args.apply:
        return _print_manifests(args, options)
    return run_plan_command(
        args,
        lambda talk: in_cluster.install(read_target_options(args), options, talk),
        "InstallPlan",
        render_next_steps,
    )


def _read_options(args: argparse.Namespace) -> InstallOptions:
    from argosy.features.install.service import DEFAULT_IMAGE, DEFAULT_INSTALL_NAMESPACE, InstallOptions

    return InstallOptions(
        namespace=args.namespace or DEFAULT_INSTALL_NAMESPACE,
        is_ha=args.ha,
        is_read_only=args.read_only,
        image=args.image or DEFAULT_IMAGE,
        hostnames=tuple(args.hostname),
        tls_secret=args.tls_secret,
    )


def _print_manifests(args: argparse.Namespace, options: InstallOptions) -> int:
    from argosy.cli.output import print_data
    from argosy.features.install import service as in_cluster

    if args.yes or args.dry_run or args.output == "text":
        raise UserError("nothing is written without --apply; add it, or remove the other flags", where="install")
    if args.output == "json":
        print_data(in_cluster.build_list(options), "json")
    else:
        print(in_cluster.render_manifests(options), end="")
    return 0


# -- plan, confirmation and steps, shared with uninstall --------------------------------------------------------------


class _DryRunStop(UserError):
    """Stops a dry run before the first write."""

    def __init__(self, planned: PlannedInstall) -> None:
        super().__init__("nothing was written")
        self.planned = planned


def list_no_next_steps(args: argparse.Namespace, planned: PlannedInstall) -> list[str]:
    return []


def run_plan_command(
    args: argparse.Namespace, execute: Any, kind: str, list_next_steps: NextStepsFunction = list_no_next_steps
) -> int:
    """Run an install or uninstall; `list_next_steps` returns the next steps to print."""
    from argosy.cli.output import print_data
    from argosy.features.install.service import WaitTimeout

    is_text = args.output in ("", "text")
    try:
        planned = execute(_build_callbacks(args, is_text=is_text))
        for line in list_next_steps(args, planned) if is_text else ():
            print(line)
    except _DryRunStop as dry_run:
        planned = dry_run.planned
    except WaitTimeout as error:
        problem, _, advice = str(error).partition("; ")
        print(f"Error: {problem}\nnext: {advice}", file=sys.stderr)
        return 4
    if not is_text:
        print_data(plan_to_wire(planned, kind), args.output)
    return 1 if planned.plan.problems else 0


def _build_callbacks(args: argparse.Namespace, *, is_text: bool) -> InstallCallbacks:
    from argosy.features.install.service import InstallCallbacks

    def confirm(planned: PlannedInstall) -> None:
        if is_text:
            print("\n".join(render_plan(planned)), flush=True)
        if args.dry_run:
            raise _DryRunStop(planned)
        if planned.plan.problems:
            raise UserError(planned.plan.problems[0])
        if planned.plan.to_write and not args.yes:
            _confirm_plan(planned, is_printed=is_text)

    def print_step(step: InstallStep) -> None:
        if is_text and step.verb != "unchanged":
            print(f"{VERB_PAST_TENSES[step.verb]:<9} {_render_step(step)}", flush=True)

    return InstallCallbacks(confirm, print_step)


def _confirm_plan(planned: PlannedInstall, *, is_printed: bool) -> None:
    if not sys.stdin.isatty():
        raise UserError("this changes the cluster and there is no terminal for a confirmation; add -y to continue")
    refusal_message = "nothing was changed; run it again and answer y to continue"
    confirm_plan("Do it?", render_plan(planned), is_printed=is_printed, refusal=refusal_message)


def render_plan(planned: PlannedInstall) -> list[str]:
    plan = planned.plan
    user = f"  user {planned.user}" if planned.user else ""
    lines = [f"Cluster    {planned.where}{user}", f"Namespace  {planned.options.namespace}", ""]
    for step in plan.to_write:
        lines.append(f"  {VERB_SIGNS[step.verb]} {_render_step(step)}")
        lines += [f"      {difference}" for difference in step.differences]
    lines += [f"  = {count} unchanged"] if (count := _count_verbs(planned)["unchanged"]) else []
    if plan.to_write:
        counts = _count_verbs(planned)
        lines.append(f"\nPlan: {counts['create']} to add, {counts['update']} to change, {counts['delete']} to remove.")
    else:
        lines.append("\nPlan: nothing to do.")
    lines += [f"! {note}" for note in plan.notes]
    return lines + [f"✗ {problem}" for problem in plan.problems]


def render_next_steps(args: argparse.Namespace, planned: PlannedInstall) -> list[str]:
    """List the commands that check the rollout and, for a new server, log in."""
    verbs = {step.key.name: step.verb for step in planned.plan.to_write if step.key.kind == "Deployment"}
    rolled_out = [name for name in verbs if verbs[name] != "delete"]
    target_flags = f" --context {shlex.quote(args.context)}" if args.context else ""
    if args.kubeconfig:
        target_flags = f" --kubeconfig {shlex.quote(str(args.kubeconfig))}{target_flags}"
    namespace = planned.options.namespace
    kubectl = f"kubectl{target_flags} -n {namespace}"
    lines = [f"next: {kubectl} rollout status deployment/{name}" for name in rolled_out[:1]]
    lines += [f"      {kubectl} rollout status deployment/{name}" for name in rolled_out[1:]]
    if verbs.get(SERVER_DEPLOYMENT) == "create":
        lines += [
            f"      argosy admin initial-password -n {namespace}{target_flags}   (the user is admin)",
            f"      {kubectl} port-forward service/{SERVER_DEPLOYMENT} 8484:443   (then the page is https://localhost:8484)",
        ]
    return lines


def _render_step(step: InstallStep) -> str:
    return f"{step.key.kind} {step.key.name}" + (f" in {step.key.namespace}" if step.key.namespace else "")


def _count_verbs(planned: PlannedInstall) -> dict[str, int]:
    return {verb: sum(step.verb == verb for step in planned.plan.steps) for verb in VERB_SIGNS}


def plan_to_wire(planned: PlannedInstall, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": kind,
        "target": planned.where,
        "user": planned.user,
        "namespace": planned.options.namespace,
        **_count_verbs(planned),
        "steps": [
            {"verb": str(step.verb), "group": step.key.group, "kind": step.key.kind,
             "namespace": step.key.namespace, "name": step.key.name, "differences": list(step.differences)}
            for step in planned.plan.steps
        ],
        "notes": list(planned.plan.notes),
        "problems": list(planned.plan.problems),
    }  # fmt: skip
