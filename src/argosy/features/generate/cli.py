"""`argosy generate …`: print manifests to commit."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.features.generate.image_wait_job_manifests import ImageWait
    from argosy.features.generate.notebook_wait_job_manifests import NotebookWait
    from argosy.kube.objects import Manifest

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy generate wait-for-image --name notebook-validator --image-tag notebook-validator:latest -n ml --with-rbac
  argosy generate wait-for-notebook --name model-training -n ml --block-wave 4 > wait.yaml

See also: docs/guides/new-repository.md
"""
EXAMPLES_BY_COMMAND = {
    "wait-for-image": [
        "argosy generate wait-for-image --name notebook-validator --image-tag notebook-validator:latest -n ml",
        "argosy generate wait-for-image --name trainer --image-tag trainer:v2 -n ml --with-rbac --auto-start",
    ],
    "wait-for-notebook": [
        "argosy generate wait-for-notebook --name model-training -n ml --block-wave 4 > wait.yaml",
        "argosy generate wait-for-notebook --name model-training -n ml --notebook-wave 2 -o json",
    ],
    "notifications": [
        "argosy generate notifications -n argocd --subscribe slack:deliveries | kubectl apply --server-side -f -",
        "argosy generate notifications -n openshift-gitops --operator > notifications.yaml",
    ],
}


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "generate",
        help="generate manifests of sync gates, and settings for notifications",
        description="Prints manifests for your repository on stdout. They do not need argosy in the cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="wait-for-image|wait-for-notebook|notifications", required=True)
    _add_wait_for_image(parts)
    _add_wait_for_notebook(parts)
    _add_notifications(parts)


def _add_wait_for_image(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(
        parts, "wait-for-image", "print a Job that blocks a sync until an image is built", run_wait_for_image
    )
    parser.add_argument("--name", required=True, metavar="NAME", help="BuildConfig that builds the image")
    parser.add_argument("--image-tag", required=True, metavar="STREAM:TAG", help="image stream tag to wait for")
    parser.add_argument("--sync-wave", type=int, default=-3, metavar="N", help="sync wave of the Job (default: -3)")
    _add_common_flags(parser, "", 30, "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest")
    parser.add_argument("--auto-start", action="store_true", help="start a build if there is none")
    parser.add_argument("--with-rbac", action="store_true", help="also print its service account and Role")


def _add_wait_for_notebook(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(
        parts, "wait-for-notebook", "print a Job that blocks a wave until a notebook succeeded", run_wait_for_notebook
    )
    parser.add_argument("--name", required=True, metavar="JOB", help="NotebookValidationJob to wait for")
    help_text = "wave to block; the Job is in the wave before it (default: 4)"
    parser.add_argument("--block-wave", type=int, default=4, metavar="N", help=help_text)
    help_text = "wave of the notebook; must be before the blocked wave"
    parser.add_argument("--notebook-wave", type=int, metavar="N", help=help_text)
    _add_common_flags(parser, "argocd-sync-waiter", 10, "bitnami/kubectl:latest")
    parser.add_argument("--without-rbac", action="store_true", help="do not print the service account and its Role")


def _add_notifications(parts: Commands[argparse.ArgumentParser]) -> None:
    help_text = "print triggers and templates for Argo CD's own notifications controller"
    parser = _add_command(parts, "notifications", help_text, run_notifications)
    parser.add_argument(
        "-n", "--namespace", default="argocd", metavar="NS", help="namespace of Argo CD (default: argocd)"
    )
    help_text = "recipient of the notifications of all Applications; repeatable"
    parser.add_argument("--subscribe", action="append", default=[], metavar="SERVICE:RECIPIENT", help=help_text)
    help_text = "print a NotificationsConfiguration, for an Argo CD that an operator manages"
    parser.add_argument("--operator", action="store_true", help=help_text)
    parser.add_argument("-o", "--output", choices=["yaml", "json"], default="yaml", help="yaml or json")


def _add_common_flags(parser: argparse.ArgumentParser, account: str, interval: int, image: str) -> None:
    parser.add_argument("-n", "--namespace", required=True, metavar="NS", help="namespace of all objects")
    help_text = f"service account of the Job (default: {account or 'its own, with the name of the Job'})"
    parser.add_argument("--service-account", default=account, metavar="SA", help=help_text)
    help_text = "seconds after which the Job fails (default: 3600)"
    parser.add_argument("--timeout", type=int, default=3600, metavar="S", help=help_text)
    help_text = f"seconds between two checks (default: {interval})"
    parser.add_argument("--interval", type=int, default=interval, metavar="S", help=help_text)
    parser.add_argument("--image", default=image, help=f"image of the Job (default: {image})")
    parser.add_argument("-o", "--output", choices=["yaml", "json"], default="yaml", help="yaml or json")


def _add_command(
    parts: Commands[argparse.ArgumentParser], name: str, help_text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in EXAMPLES_BY_COMMAND[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def run_wait_for_image(args: argparse.Namespace) -> int:
    from argosy.features.generate.image_wait_job_manifests import ImageWait

    wait = ImageWait(
        name=args.name,
        image_tag=args.image_tag,
        namespace=args.namespace,
        wave=args.sync_wave,
        service_account=args.service_account,
        timeout=args.timeout,
        interval=args.interval,
        image=args.image,
        starts_build=args.auto_start,
        has_rbac=args.with_rbac,
    )
    return _print_manifests(wait, "--with-rbac writes them", args.output)


def run_wait_for_notebook(args: argparse.Namespace) -> int:
    from argosy.features.generate.notebook_wait_job_manifests import NotebookWait

    wait = NotebookWait(
        name=args.name,
        namespace=args.namespace,
        block_wave=args.block_wave,
        notebook_wave=args.notebook_wave,
        service_account=args.service_account,
        timeout=args.timeout,
        interval=args.interval,
        image=args.image,
        has_rbac=not args.without_rbac,
    )
    return _print_manifests(wait, "without --without-rbac they are written", args.output)


def run_notifications(args: argparse.Namespace) -> int:
    from argosy.features.notifications.service import build_export

    manifest = build_export(args.namespace, args.subscribe, is_operated=args.operator)
    print(_render_manifests([manifest], args.output), end="")
    print("add the services and their secrets yourself: keys service.<type>, see docs/reference/notifications.md; "
          "apply with kubectl apply --server-side, which keeps other keys", file=sys.stderr)  # fmt: skip
    return 0


def _print_manifests(wait: ImageWait | NotebookWait, rbac_hint: str, output: str) -> int:
    print(_render_manifests(wait.build_manifests(), output), end="")
    print(_render_missing_rules(wait, rbac_hint), end="", file=sys.stderr)
    return 0


def _render_manifests(manifests: Sequence[Manifest], output: str) -> str:
    """Render YAML documents or one JSON List; `kubectl apply -f -` accepts both."""
    from argosy.kube.objects import dump_yaml_documents

    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"
    return dump_yaml_documents(manifests)


def _render_missing_rules(wait: ImageWait | NotebookWait, rbac_hint: str) -> str:
    """List the rules that a user's own service account needs; empty if RBAC is generated as well."""
    from argosy.kube.objects import dump_yaml

    if wait.has_rbac:
        return ""
    rules = "".join(f"  {line}\n" for line in dump_yaml(wait.build_rules()).splitlines())
    account_name = f"service account {wait.account} in {wait.namespace}"
    return f"{account_name} needs these rules, in an earlier wave ({rbac_hint}):\n{rules}"
