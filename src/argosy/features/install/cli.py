"""`argosy install`: print the manifests of argosy, or apply them to a cluster."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.prompts import agree
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.install.service import InstallOptions, Planned, Step, Talk

Further = Callable[[argparse.Namespace, "Planned"], list[str]]
Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy install > argosy.yaml
  argosy install --apply --dry-run
  argosy install --apply --ha --image registry.example.com/argosy:0.1.0 --hostname argosy.example.com
  argosy install --namespace argocd --read-only --apply

See also: docs/guides/install.md
"""
SIGNS = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
PAST = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}
SERVER = "argosy-server"
API = "cli.argosy.dev/v1"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "install",
        help="install argosy in a cluster",
        description="Prints the manifests that run argosy in a cluster: controller and server, with the minimal "
        "permissions that they need. With --apply it applies them, after a plan and a confirmation; run it again to "
        "upgrade.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_namespace(parser, "namespace of argosy, its Applications and settings (default: argosy)")
    about = "high availability: three sharded controllers and two servers, on different nodes"
    parser.add_argument("--ha", action="store_true", help=about)
    about = "a read-only server: no controller, and no write permission except for login data"
    parser.add_argument("--read-only", action="store_true", help=about)
    parser.add_argument("--image", default="", metavar="REF", help="the image to run (default: argosy:VERSION)")
    about = "hostname of the web page; repeatable"
    parser.add_argument("--hostname", action="append", default=[], metavar="NAME", help=about)
    about = "Secret with tls.crt and tls.key for the web page (default: each server creates a certificate)"
    parser.add_argument("--tls-secret", default="", metavar="NAME", help=about)
    parser.add_argument(
        "--apply", action="store_true", help="apply the manifests to the cluster, after a plan and a confirmation"
    )
    add_writing(parser, "with --apply: show the plan, and write nothing")
    about = "yaml or json: the manifests; with --apply: text, or the plan as yaml or json"
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=install)


def add_namespace(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)


def add_writing(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help=about)


def install(chosen: argparse.Namespace) -> int:
    from argosy.features.install import service as in_cluster

    options = _options(chosen)
    if not chosen.apply:
        return _print(chosen, options)
    return carried_out(
        chosen, lambda talk: in_cluster.install(target_options(chosen), options, talk), "InstallPlan", next_lines
    )


def _options(chosen: argparse.Namespace) -> InstallOptions:
    from argosy.features.install.service import USUAL_IMAGE, USUAL_NAMESPACE, InstallOptions

    return InstallOptions(
        namespace=chosen.namespace or USUAL_NAMESPACE,
        is_ha=chosen.ha,
        is_read_only=chosen.read_only,
        image=chosen.image or USUAL_IMAGE,
        hostnames=tuple(chosen.hostname),
        tls_secret=chosen.tls_secret,
    )


def _print(chosen: argparse.Namespace, options: InstallOptions) -> int:
    from argosy.cli.output import print_data
    from argosy.features.install import service as in_cluster

    if chosen.yes or chosen.dry_run or chosen.output == "text":
        raise UserError("nothing is written without --apply; add it, or remove the other flags", where="install")
    if chosen.output == "json":
        print_data(in_cluster.listed(options), "json")
    else:
        print(in_cluster.printed(options), end="")
    return 0


# -- plan, confirmation and steps, shared with uninstall --------------------------------------------------------------


class _Rehearsed(UserError):
    """Stops a dry run before the first write."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("nothing was written")
        self.planned = planned


def nothing_next(chosen: argparse.Namespace, planned: Planned) -> list[str]:
    return []


def carried_out(chosen: argparse.Namespace, carry_out: Any, kind: str, further: Further = nothing_next) -> int:
    """Run an install or uninstall; `further` returns the next steps to print."""
    from argosy.cli.output import print_data
    from argosy.features.install.service import TooLate

    is_text = chosen.output in ("", "text")
    try:
        planned = carry_out(_talk(chosen, is_text=is_text))
        for line in further(chosen, planned) if is_text else ():
            print(line)
    except _Rehearsed as rehearsed:
        planned = rehearsed.planned
    except TooLate as error:
        what, _, advice = str(error).partition("; ")
        print(f"Error: {what}\nnext: {advice}", file=sys.stderr)
        return 4
    if not is_text:
        print_data(plan_data(planned, kind), chosen.output)
    return 1 if planned.plan.problems else 0


def _talk(chosen: argparse.Namespace, *, is_text: bool) -> Talk:
    from argosy.features.install.service import Talk

    def confirm(planned: Planned) -> None:
        if is_text:
            print("\n".join(plan_lines(planned)), flush=True)
        if chosen.dry_run:
            raise _Rehearsed(planned)
        if planned.plan.problems:
            raise UserError(planned.plan.problems[0])
        if planned.plan.to_write and not chosen.yes:
            _ask(planned, is_printed=is_text)

    def done(step: Step) -> None:
        if is_text and step.verb != "unchanged":
            print(f"{PAST[step.verb]:<9} {_named(step)}", flush=True)

    return Talk(confirm, done)


def _ask(planned: Planned, *, is_printed: bool) -> None:
    if not sys.stdin.isatty():
        raise UserError("this changes the cluster and there is no terminal for a confirmation; add -y to continue")
    no = "nothing was changed; run it again and answer y to continue"
    agree("Do it?", plan_lines(planned), is_printed=is_printed, refusal=no)


def plan_lines(planned: Planned) -> list[str]:
    plan = planned.plan
    user = f"  user {planned.user}" if planned.user else ""
    lines = [f"Cluster    {planned.where}{user}", f"Namespace  {planned.options.namespace}", ""]
    for step in plan.to_write:
        lines.append(f"  {SIGNS[step.verb]} {_named(step)}")
        lines += [f"      {difference}" for difference in step.differences]
    lines += [f"  = {count} unchanged"] if (count := _counts(planned)["unchanged"]) else []
    if plan.to_write:
        counts = _counts(planned)
        lines.append(f"\nPlan: {counts['create']} to add, {counts['update']} to change, {counts['delete']} to remove.")
    else:
        lines.append("\nPlan: nothing to do.")
    lines += [f"! {note}" for note in plan.notes]
    return lines + [f"✗ {problem}" for problem in plan.problems]


def next_lines(chosen: argparse.Namespace, planned: Planned) -> list[str]:
    """List the commands that check the rollout and, for a new server, log in."""
    verbs = {step.key.name: step.verb for step in planned.plan.to_write if step.key.kind == "Deployment"}
    rolled = [name for name in verbs if verbs[name] != "delete"]
    where = f" --context {shlex.quote(chosen.context)}" if chosen.context else ""
    if chosen.kubeconfig:
        where = f" --kubeconfig {shlex.quote(str(chosen.kubeconfig))}{where}"
    namespace = planned.options.namespace
    kubectl = f"kubectl{where} -n {namespace}"
    lines = [f"next: {kubectl} rollout status deployment/{name}" for name in rolled[:1]]
    lines += [f"      {kubectl} rollout status deployment/{name}" for name in rolled[1:]]
    if verbs.get(SERVER) == "create":
        lines += [
            f"      argosy admin initial-password -n {namespace}{where}   (the user is admin)",
            f"      {kubectl} port-forward service/{SERVER} 8484:443   (then the page is https://localhost:8484)",
        ]
    return lines


def _named(step: Step) -> str:
    return f"{step.key.kind} {step.key.name}" + (f" in {step.key.namespace}" if step.key.namespace else "")


def _counts(planned: Planned) -> dict[str, int]:
    return {verb: sum(step.verb == verb for step in planned.plan.steps) for verb in SIGNS}


def plan_data(planned: Planned, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": kind,
        "target": planned.where,
        "user": planned.user,
        "namespace": planned.options.namespace,
        **_counts(planned),
        "steps": [
            {"verb": str(step.verb), "group": step.key.group, "kind": step.key.kind,
             "namespace": step.key.namespace, "name": step.key.name, "differences": list(step.differences)}
            for step in planned.plan.steps
        ],
        "notes": list(planned.plan.notes),
        "problems": list(planned.plan.problems),
    }  # fmt: skip
