"""`argosy version`: print the version, simulated parts of the sandbox, and running add-ons."""

from __future__ import annotations

import argparse
import json

from argosy import __version__

SANDBOX = {
    "API: verbs, patches, watches, validation, CRDs, RBAC": "real behaviour of Kubernetes 1.32",
    "garbage collection, namespaces, CRDs, event expiry": "real behaviour",
    "Pods, Deployments, Jobs and other workloads": "stored, not run: no scheduler, no kubelet, except with simulators",
    "logs, exec, port-forward": "rejected with a reason; with the add-on simulators, Pods have logs",
    "Services": "get an address without a backend",
    "admission webhooks, aggregated APIs": "stored, not called",
    "add-on simulators": "simulates scheduler, kubelet, workload controllers, KServe, Routes, builds and operators",
    "add-on argocd_operator": "simulates the OpenShift GitOps operator: real settings, but no Argo CD runs",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    epilog = "Examples:\n  argosy version\n  argosy version -o json"
    parser = commands.add_parser(
        "version",
        help="print the version and what is simulated",
        description="Prints the version, and which parts of the sandbox are simulated.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text (default) or json")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.cli.running_instances import chosen_folder
    from argosy.kube.controller.addon_loader import described

    current = chosen_folder(None).running()
    addons, running = described(), described(current.addons) if current and current.addons else {}
    if chosen.output == "json":
        head = {"apiVersion": "cli.argosy.dev/v1", "kind": "Version", "version": __version__, "kubernetes": "1.32"}
        now = {"api": current.api, "addons": running} if current else None
        print(json.dumps({**head, "sandbox": SANDBOX, "addons": addons, "running": now}, indent=2))
        return 0
    print(f"argosy {__version__} (Kubernetes API 1.32)\n\nIn the sandbox:")
    _print(SANDBOX)
    print("\nAdd-ons:")
    _print(addons)
    if current:
        print(f"\nRunning at {current.api}: {', '.join(running) or 'no add-on'}")
    return 0


def _print(rows: dict[str, str]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        print(f"  {name:<{width}}  {text}")
