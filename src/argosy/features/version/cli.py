"""`argosy version`: print the version, simulated parts of the sandbox, and running add-ons."""

from __future__ import annotations

import argparse
import json

from argosy import __version__
from argosy.kube.well_known_kinds import CLI_API_VERSION

SANDBOX_PARTS = {
    "API: verbs, patches, watches, validation, CRDs, RBAC": "real behaviour of Kubernetes 1.32",
    "garbage collection, namespaces, CRDs, event expiry": "real behaviour",
    "Pods, Deployments, Jobs and other workloads": "stored, not run: no scheduler, no kubelet, except with simulators",
    "logs, exec, port-forward": "rejected with a reason; with the add-on simulators, Pods have logs",
    "Services": "get an address without a backend",
    "admission webhooks, aggregated APIs": "stored, not called",
    "add-on simulators": "simulates scheduler, kubelet, workload controllers, KServe, Routes, builds and operators",
    "add-on argocd_operator": "simulates the OpenShift GitOps operator: real settings, but no Argo CD runs",
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    epilog = "Examples:\n  argosy version\n  argosy version -o json"
    parser = commands.add_parser(
        "version",
        help="print the version and what is simulated",
        description="Prints the version, and which parts of the sandbox are simulated.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text (default) or json")
    parser.set_defaults(run=run_version)


def run_version(args: argparse.Namespace) -> int:
    from argosy.cli.running_sandbox_selection import select_folder
    from argosy.kube.controller.addon_loader import describe_addons

    running_instance = select_folder(None).find_running_instance()
    addons, running_addons = (
        describe_addons(),
        describe_addons(running_instance.addons) if running_instance and running_instance.addons else {},
    )
    if args.output == "json":
        header = {"apiVersion": CLI_API_VERSION, "kind": "Version", "version": __version__, "kubernetes": "1.32"}
        running_info = {"api": running_instance.api, "addons": running_addons} if running_instance else None
        print(json.dumps({**header, "sandbox": SANDBOX_PARTS, "addons": addons, "running": running_info}, indent=2))
        return 0
    print(f"argosy {__version__} (Kubernetes API 1.32)\n\nIn the sandbox:")
    _print_rows(SANDBOX_PARTS)
    print("\nAdd-ons:")
    _print_rows(addons)
    if running_instance:
        print(f"\nRunning at {running_instance.api}: {', '.join(running_addons) or 'no add-on'}")
    return 0


def _print_rows(rows: dict[str, str]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        print(f"  {name:<{width}}  {text}")
