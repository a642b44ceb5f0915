"""`argosy controller`: run the engine, add-ons, or both, on any cluster."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.log_flags import add_log_flags, print_line, start_logging
from argosy.cli.plugin_sockets_flag import add_plugin_sockets_flag, read_plugin_sockets_folder
from argosy.cli.port_validation import check_port
from argosy.cli.seconds_flag_parser import parse_seconds

if TYPE_CHECKING:
    from argosy.cli.cluster_target import ClusterTarget

Commands = argparse._SubParsersAction  # the type argparse gives no public name

log = logging.getLogger(__name__)

EVENT_REASONS_VARIABLE = "ARGOCD_ENABLE_K8S_EVENT"
EXAMPLES = """\
Examples:
  argosy controller
  argosy controller --kubeconfig ~/.kube/config --context staging --namespace argocd
  argosy controller --shards auto
  argosy controller --no-engine --addons notebooks=pods

See also: docs/reference/cli.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "controller",
        help="run the controller that syncs the Applications of a cluster",
        description="Reconciles the Applications of a cluster with Git, until it is stopped. "
        "Inside a Pod it uses the cluster of the Pod.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_flags(parser)
    help_text = "namespace of Applications (default: where argosy or an ArgoCD resource is installed, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="folder for Git mirrors")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="concurrent reconciliations (default: 8)")
    parser.add_argument("--renderers", type=int, default=2, metavar="N", help="render processes (default: 2)")
    add_plugin_sockets_flag(parser)
    help_text = "disable leader election; only if no other engine works on the cluster"
    parser.add_argument("--no-leader-elect", action="store_true", help=help_text)
    help_text = "shard the Applications over all controllers started with this flag, instead of leader election"
    parser.add_argument("--shards", choices=["auto"], default="", metavar="auto", help=help_text)
    help_text = "add-on controllers to run, such as notebooks=pods"
    parser.add_argument("--addons", default="", metavar="NAME[=VARIANT],…", help=help_text)
    help_text = "run only the add-ons: an Argo CD reconciles the Applications"
    parser.add_argument("--no-engine", action="store_true", help=help_text)
    help_text = "serve /healthz, /livez, /readyz and /metrics on this port (default: off)"
    parser.add_argument("--port", type=int, default=0, metavar="N", help=help_text)
    help_text = "address of that port; :: for all (default: 127.0.0.1, inside a Pod all)"
    parser.add_argument("--listen", default="", metavar="ADDR", help=help_text)
    help_text = "seconds without progress until /healthz fails (default: 600)"
    parser.add_argument("--stuck-after", type=parse_seconds, default=600.0, metavar="SECONDS", help=help_text)
    help_text = (
        "reasons of the Events to write about Applications: all, none, or a list such as "
        f"OperationCompleted,ResourceUpdated (default: ${EVENT_REASONS_VARIABLE}, else all)"
    )
    parser.add_argument("--enable-k8s-event", metavar="LIST", help=help_text)
    help_text = "types of the conditions to export as argocd_app_condition, such as SyncError (default: none)"
    parser.add_argument("--metrics-application-conditions", action="append", default=[], metavar="LIST", help=help_text)
    add_log_flags(parser)
    parser.set_defaults(run=run_controller)


def run_controller(args: argparse.Namespace) -> int:
    from argosy.features.controller.process import ControllerOptions, run_controller

    check_port("--port", args.port, "none")
    start_logging(args)
    run_controller(
        ControllerOptions(
            target=read_target_options(args),
            namespace=args.namespace,
            mirrors=args.mirrors,
            plugin_sockets=read_plugin_sockets_folder(args),
            uses_leader_election=not args.no_leader_elect,
            is_sharded=bool(args.shards),
            workers=max(1, args.workers),
            renderers=max(1, args.renderers),
            addons=args.addons,
            runs_engine=not args.no_engine,
            port=args.port,
            listen=args.listen,
            stuck_after_seconds=args.stuck_after,
            event_reasons=_read_event_reasons(args.enable_k8s_event),
            condition_types=_read_condition_types(args.metrics_application_conditions),
        ),
        partial(_print_status, args),
    )
    return 0


def _read_event_reasons(flag: str | None) -> frozenset[str]:
    """argo: Read the list of the flag, or else of the variable. The first `all` or `none` in it decides."""
    from argosy.gitops.status.application_event_manifests import ALL_EVENT_REASONS

    where = "--enable-k8s-event" if flag is not None else EVENT_REASONS_VARIABLE
    text = os.environ.get(EVENT_REASONS_VARIABLE, "") or "all" if flag is None else flag
    reasons = set()
    for reason in map(str.strip, text.split(",")):
        if reason in ("all", "none"):
            return ALL_EVENT_REASONS if reason == "all" else frozenset()
        if reason in ALL_EVENT_REASONS:
            reasons.add(reason)
        elif reason:
            all_reasons = ",".join(sorted(ALL_EVENT_REASONS))
            log.warning(
                "ignoring an unknown Event reason: where=%s reason=%s known=%s", where, reason[:80], all_reasons
            )
    return frozenset(reasons)


def _read_condition_types(flags: Sequence[str]) -> frozenset[str]:
    """argo: The flag may be repeated, and each may be a list."""
    return frozenset(name.strip() for flag in flags for name in flag.split(",") if name.strip())


def _print_status(args: argparse.Namespace, target: ClusterTarget, namespace: str, leader: str, until: str) -> None:
    if leader:
        lines = [
            f"{leader} is the leader for {target.display_name}: it holds the Lease in namespace {namespace}.",
            f"This controller waits. It takes over when the leader stops, or at {until} if the leader was killed:"
            " the Lease of a killed leader must expire first, and a live leader renews it.",
            "Ctrl-C stops it.",
        ]
    elif args.no_engine:
        lines = [f"Running add-ons on {target.display_name}; leader election is in namespace {namespace}."]
    else:
        lines = [
            f"Reconciling the Applications of {target.display_name}; settings are in namespace {namespace}.",
            "Ctrl-C stops it; running operations resume at the next start.",
        ]
    for line in lines:
        print_line(args, line)
