"""Records what the real argocd-operator makes of the shapes and of the edits: tests/data/argocd-operator/recorded.json.

Usage: PYTHONPATH=tests python -m support.argocd_operator.record [FILE]
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from argosy.kube.objects import dump_yaml
from argosy.kube.schema.bundled_crds import load_definition
from support.argocd_operator.facts import Facts, decode_changes, encode_changes
from support.argocd_operator.program import VERSION, OperatorInstallation, find_operator, run_operator
from support.argocd_operator.site import EDITED, RECORDED, Site, load_edits, load_shapes, name_namespace
from support.clusters import kubectl, sandbox, until_served

FIRST: Final = "empty"  # the other shapes are recorded as changes of this one
_OWN_DEFINITIONS: Final = (
    "argoproj.io_applications.yaml",
    "argoproj.io_applicationsets.yaml",
    "argoproj.io_appprojects.yaml",
    "argoproj.io_argocdexports.yaml",
    "argoproj.io_argocds.yaml",
    "argoproj.io_namespacemanagements.yaml",
    "argoproj.io_notificationsconfigurations.yaml",
)


@contextlib.contextmanager
def run_real_site(operator: OperatorInstallation, folder: Path) -> Iterator[Site]:
    """Run the real operator on a sandbox with its CRDs and Routes."""
    folder.mkdir(parents=True)
    with sandbox(folder / "real", "--port", "0") as server:
        files = [word for name in _OWN_DEFINITIONS for word in ("-f", operator.definitions / name)]
        done = kubectl(server.kubeconfig, "apply", "--server-side", *files)
        assert done.code == 0, done.err
        route = dump_yaml(load_definition("routes.route.openshift.io"))
        done = kubectl(server.kubeconfig, "apply", "--server-side", "-f", "-", input=route)
        assert done.code == 0, done.err
        until_served(server.kubeconfig, "argocds.argoproj.io", "routes.route.openshift.io")
        with run_operator(operator, server.kubeconfig, folder):
            yield Site("operator", server, has_no_kubelet=True)


def record(site: Site) -> dict[str, Any]:
    shapes = load_shapes()
    for shape, spec in shapes.items():
        site.install(name_namespace(shape), spec)
    settled = site.read_settled([name_namespace(shape) for shape in shapes])
    facts = {shape: settled[name_namespace(shape)] for shape in shapes}
    print(f"{len(shapes)} shapes\n{json.dumps(facts)}", file=sys.stderr, flush=True)
    spec, edits = load_edits()
    site.install(EDITED, spec)
    effects = {}
    for name, changes in site.read_effects(EDITED, edits):
        effects[name] = changes
        print(f"{name}: {json.dumps(changes)[:300]}", file=sys.stderr)
    changes_by_shape = {shape: encode_changes(facts[FIRST], facts[shape]) for shape in shapes if shape != FIRST}
    return {"version": VERSION, "shapes": {FIRST: facts[FIRST], **changes_by_shape}, "edits": effects}


def load_recorded_shapes(recorded: Mapping[str, Any]) -> dict[str, Facts]:
    shapes = recorded["shapes"]
    return {shape: facts if shape == FIRST else decode_changes(shapes[FIRST], facts) for shape, facts in shapes.items()}


def main() -> None:
    target = Path(sys.argv[1]) if sys.argv[1:] else RECORDED
    operator = find_operator()
    if operator is None:
        sys.exit("argocd-operator is not built; run: make argocd-operator")
    with (
        tempfile.TemporaryDirectory(prefix="argocd-operator-") as folder,
        run_real_site(operator, Path(folder) / "site") as site,
    ):
        recorded = record(site)
    target.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
