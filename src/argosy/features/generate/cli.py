"""`argosy generate …`: print manifests to commit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.features.generate.wait_for_image import ImageWait
    from argosy.features.generate.wait_for_notebook import NotebookWait

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy generate wait-for-image --name notebook-validator --image-tag notebook-validator:latest -n ml --with-rbac
  argosy generate wait-for-notebook --name model-training -n ml --block-wave 4 > wait.yaml

See also: docs/guides/new-repository.md
"""
SHOWN = {
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


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "generate",
        help="print manifests that hold up a sync, and settings for notifications",
        description="Manifests for your repository, on stdout. They need no argosy in the cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="wait-for-image|wait-for-notebook|notifications", required=True)
    _add_image(parts)
    _add_notebook(parts)
    _add_notifications(parts)


def _add_image(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "wait-for-image", "a Job that holds up a sync until an image is built", wait_for_image)
    parser.add_argument("--name", required=True, metavar="NAME", help="the BuildConfig that builds it")
    parser.add_argument("--image-tag", required=True, metavar="STREAM:TAG", help="the tag to wait for")
    parser.add_argument("--sync-wave", type=int, default=-3, metavar="N", help="the Job's wave (default: -3)")
    _add_usual(parser, "", 30, "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest")
    parser.add_argument("--auto-start", action="store_true", help="start a build if there is none")
    parser.add_argument("--with-rbac", action="store_true", help="also the service account with its Role")


def _add_notebook(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "wait-for-notebook", "a Job that blocks a wave until a notebook succeeded", wait_for_notebook)
    parser.add_argument("--name", required=True, metavar="JOB", help="the NotebookValidationJob to wait for")
    about = "the wave that must not begin; the Job goes into the one before it (default: 4)"
    parser.add_argument("--block-wave", type=int, default=4, metavar="N", help=about)
    about = "the notebook's wave, to be checked against the blocked one"
    parser.add_argument("--notebook-wave", type=int, metavar="N", help=about)
    _add_usual(parser, "argocd-sync-waiter", 10, "bitnami/kubectl:latest")
    parser.add_argument("--without-rbac", action="store_true", help="leave out the service account and its Role")


def _add_notifications(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "triggers and templates for an Argo CD with a notifications controller of its own"
    parser = _add(parts, "notifications", about, notifications)
    parser.add_argument("-n", "--namespace", default="argocd", metavar="NS", help="where Argo CD is (default: argocd)")
    about = "who hears of it, for all Applications; repeatable"
    parser.add_argument("--subscribe", action="append", default=[], metavar="SERVICE:RECIPIENT", help=about)
    about = "a NotificationsConfiguration, for an Argo CD whose settings belong to an operator"
    parser.add_argument("--operator", action="store_true", help=about)
    parser.add_argument("-o", "--output", choices=["yaml", "json"], default="yaml", help="yaml or json")


def _add_usual(parser: argparse.ArgumentParser, account: str, interval: int, image: str) -> None:
    parser.add_argument("-n", "--namespace", required=True, metavar="NS", help="namespace of all of it")
    about = f"who runs the Job (default: {account or 'one of its own, named as the Job'})"
    parser.add_argument("--service-account", default=account, metavar="SA", help=about)
    parser.add_argument("--timeout", type=int, default=3600, metavar="S", help="give up after (default: 3600)")
    parser.add_argument("--interval", type=int, default=interval, metavar="S", help=f"look every (default: {interval})")
    parser.add_argument("--image", default=image, help=f"the Job's own image (default: {image})")
    parser.add_argument("-o", "--output", choices=["yaml", "json"], default="yaml", help="yaml or json")


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in SHOWN[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def wait_for_image(chosen: argparse.Namespace) -> int:
    from argosy.features.generate.service import ImageWait

    wait = ImageWait(
        name=chosen.name,
        image_tag=chosen.image_tag,
        namespace=chosen.namespace,
        wave=chosen.sync_wave,
        service_account=chosen.service_account,
        timeout=chosen.timeout,
        interval=chosen.interval,
        image=chosen.image,
        starts_build=chosen.auto_start,
        has_rights=chosen.with_rbac,
    )
    return _print(wait, "--with-rbac writes them", chosen.output)


def wait_for_notebook(chosen: argparse.Namespace) -> int:
    from argosy.features.generate.service import NotebookWait

    wait = NotebookWait(
        name=chosen.name,
        namespace=chosen.namespace,
        block_wave=chosen.block_wave,
        notebook_wave=chosen.notebook_wave,
        service_account=chosen.service_account,
        timeout=chosen.timeout,
        interval=chosen.interval,
        image=chosen.image,
        has_rights=not chosen.without_rbac,
    )
    return _print(wait, "without --without-rbac they are written", chosen.output)


def notifications(chosen: argparse.Namespace) -> int:
    from argosy.features.generate.service import written
    from argosy.features.notifications.service import exported

    made = exported(chosen.namespace, chosen.subscribe, is_operated=chosen.operator)
    print(written([made], chosen.output), end="")
    print("services and their secrets are yours: keys service.<type>, see docs/reference/notifications.md; apply with "
          "kubectl apply --server-side, which leaves other keys alone", file=sys.stderr)  # fmt: skip
    return 0


def _print(wait: ImageWait | NotebookWait, flag: str, form: str) -> int:
    from argosy.features.generate.service import rights_wanted, written

    print(written(wait.manifests(), form), end="")
    print(rights_wanted(wait, flag), end="", file=sys.stderr)
    return 0
