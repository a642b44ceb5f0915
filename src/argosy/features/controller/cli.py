"""`argosy controller`: the engine, add-ons, or both, on any cluster."""

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
        help="deliver the Applications of a cluster",
        description="Keeps the Applications of a cluster as Git asks, until it is stopped. "
        "Inside a Pod it works on the cluster around it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_flags(parser)
    about = "where Applications are (default: where argosy is installed, or an ArgoCD resource is, else argocd)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="folder for what is fetched from Git")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="applications at a time (default: 8)")
    parser.add_argument("--renderers", type=int, default=2, metavar="N", help="processes that render (default: 2)")
    about = "do not wait for the lead; only where no other engine works on the cluster"
    parser.add_argument("--no-leader-elect", action="store_true", help=about)
    about = "share the Applications with all others that are started so, instead of waiting for the lead"
    parser.add_argument("--shards", choices=["auto"], default="", metavar="auto", help=about)
    about = "controllers to run besides, such as notebooks=pods"
    parser.add_argument("--addons", default="", metavar="NAME[=VARIANT],…", help=about)
    about = "run the add-ons alone: an Argo CD delivers the Applications"
    parser.add_argument("--no-engine", action="store_true", help=about)
    about = "serve /healthz, /livez, /readyz and /metrics on this port (default: nothing is served)"
    parser.add_argument("--port", type=int, default=0, metavar="N", help=about)
    about = "address of that port; :: is every one (default: 127.0.0.1, and inside a Pod every one)"
    parser.add_argument("--listen", default="", metavar="ADDR", help=about)
    about = "seconds without progress until /healthz says so (default: 600)"
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
            f"{leader} delivers the Applications of {target.where}: it has the lead in namespace {namespace}.",
            f"This controller waits. It takes over when that one stops, or at {until} if that one was killed: a"
            " controller that was killed keeps the lead until its Lease ends, and one that lives renews it.",
            "Ctrl-C ends it.",
        ]
    elif chosen.no_engine:
        lines = [f"Add-ons work on {target.where}; who leads is decided in namespace {namespace}."]
    else:
        lines = [
            f"Delivering the Applications of {target.where}; settings are in namespace {namespace}.",
            "Ctrl-C ends it; what was begun is taken up again at the next start.",
        ]
    for line in lines:
        say(chosen, line)
