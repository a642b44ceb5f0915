"""`argosy controller`: run the engine, add-ons, or both, on any cluster."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.log_flags import add_log_flags, begin_log, say
from argosy.cli.ports import check_port
from argosy.cli.target_flags import add_target_flags, target_options

if TYPE_CHECKING:
    from argosy.cli.target import Target

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy controller
  argosy controller --kubeconfig ~/.kube/config --context staging --namespace argocd
  argosy controller --shards auto
  argosy controller --no-engine --addons notebooks=pods

See also: docs/reference/cli.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "controller",
        help="run the controller that syncs the Applications of a cluster",
        description="Reconciles the Applications of a cluster with Git, until it is stopped. "
        "Inside a Pod it uses the cluster of the Pod.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_flags(parser)
    about = "namespace of Applications (default: where argosy or an ArgoCD resource is installed, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="folder for Git mirrors")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="concurrent reconciliations (default: 8)")
    parser.add_argument("--renderers", type=int, default=2, metavar="N", help="render processes (default: 2)")
    about = "disable leader election; only if no other engine works on the cluster"
    parser.add_argument("--no-leader-elect", action="store_true", help=about)
    about = "shard the Applications over all controllers started with this flag, instead of leader election"
    parser.add_argument("--shards", choices=["auto"], default="", metavar="auto", help=about)
    about = "add-on controllers to run, such as notebooks=pods"
    parser.add_argument("--addons", default="", metavar="NAME[=VARIANT],…", help=about)
    about = "run only the add-ons: an Argo CD reconciles the Applications"
    parser.add_argument("--no-engine", action="store_true", help=about)
    about = "serve /healthz, /livez, /readyz and /metrics on this port (default: off)"
    parser.add_argument("--port", type=int, default=0, metavar="N", help=about)
    about = "address of that port; :: for all (default: 127.0.0.1, inside a Pod all)"
    parser.add_argument("--listen", default="", metavar="ADDR", help=about)
    about = "seconds without progress until /healthz fails (default: 600)"
    parser.add_argument("--stuck-after", type=seconds, default=600.0, metavar="SECONDS", help=about)
    add_log_flags(parser)
    parser.set_defaults(run=control)


def control(chosen: argparse.Namespace) -> int:
    from argosy.features.controller.process import ControllerOptions, run

    check_port("--port", chosen.port, "none")
    begin_log(chosen)
    run(
        ControllerOptions(
            target=target_options(chosen),
            namespace=chosen.namespace,
            mirrors=chosen.mirrors,
            elects=not chosen.no_leader_elect,
            shares=bool(chosen.shards),
            workers=max(1, chosen.workers),
            renderers=max(1, chosen.renderers),
            addons=chosen.addons,
            delivers=not chosen.no_engine,
            port=chosen.port,
            listen=chosen.listen,
            stuck=chosen.stuck_after,
        ),
        partial(_say, chosen),
    )
    return 0


def _say(chosen: argparse.Namespace, target: Target, namespace: str, leader: str, until: str) -> None:
    if leader:
        lines = [
            f"{leader} is the leader for {target.where}: it holds the Lease in namespace {namespace}.",
            f"This controller waits. It takes over when the leader stops, or at {until} if the leader was killed:"
            " the Lease of a killed leader must expire first, and a live leader renews it.",
            "Ctrl-C stops it.",
        ]
    elif chosen.no_engine:
        lines = [f"Running add-ons on {target.where}; leader election is in namespace {namespace}."]
    else:
        lines = [
            f"Reconciling the Applications of {target.where}; settings are in namespace {namespace}.",
            "Ctrl-C stops it; running operations resume at the next start.",
        ]
    for line in lines:
        say(chosen, line)
