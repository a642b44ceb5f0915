"""`argosy version`: which version this is, and what in the sandbox is simulated."""

from __future__ import annotations

import argparse
import json

from argosy import __version__

SANDBOX = {
    "API: verbs, patches, watches, validation, CRDs, RBAC": "real behaviour of Kubernetes 1.32, implemented here",
    "garbage collection, namespaces, CRDs, event expiry": "real behaviour",
    "Pods, Deployments, Jobs and other workloads": "stored and validated, not run: no scheduler, no kubelet",
    "logs, exec, port-forward": "refused with a sentence that says why",
    "Services": "get an address that leads nowhere",
    "admission webhooks, aggregated APIs": "stored, not called",
    "add-on simulators": "plays scheduler, kubelet and the controllers of workloads and claims; no program runs",
    "add-on argocd_operator": "plays the OpenShift GitOps operator: its settings are real, no Argo CD runs behind them",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    epilog = "Examples:\n  argosy version\n  argosy version -o json"
    parser = commands.add_parser(
        "version",
        help="this version, and what is simulated",
        description="Shows the version, and what of the sandbox is real and what is simulated.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text (default) or json")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    if chosen.output == "json":
        head = {"apiVersion": "cli.argosy.dev/v1", "kind": "Version"}
        print(json.dumps({**head, "version": __version__, "kubernetes": "1.32", "sandbox": SANDBOX}, indent=2))
        return 0
    print(f"argosy {__version__} (Kubernetes API 1.32)\n\nIn the sandbox:")
    width = max(map(len, SANDBOX))
    for name, text in SANDBOX.items():
        print(f"  {name:<{width}}  {text}")
    return 0
