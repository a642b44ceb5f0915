"""Builds the `argocd_operator` add-on: simulates the OpenShift GitOps operator, so that its behaviour can be tried
without one.

In: a variant: "" for OpenShift GitOps, `plain` for an Argo CD without an operator. Out: an AddOn.
Never: runs Argo CD: Applications are not reconciled, Pods run no program, and every object says that it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from argosy.errors import UserError
from argosy.kube.controller import AddOn
from argosy.kube.schema.bundled_crds import list_definition_names as all_definitions
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import POD
from argosy.sandbox.simulators.openshift_gitops import initial_objects, kinds_and_labels
from argosy.sandbox.simulators.openshift_gitops.operator import ArgoCDOperator
from argosy.sandbox.simulators.openshift_gitops.workload_simulator import WORKLOAD_KINDS, WorkloadSimulator

ADDON_NAME: Final = "argocd_operator"
OPENSHIFT_CRD_SUFFIXES: Final = (
    ".openshift.io",
    ".operators.coreos.com",
    ".maistra.io",
    ".opendatahub.io",
    ".pfe.rhpds.com",
)


def make(variant: str) -> AddOn:
    if variant not in VARIANTS:
        variant_names = ", ".join(
            f"{ADDON_NAME}={variant_name}" if variant_name else ADDON_NAME for variant_name in VARIANTS
        )
        raise UserError(
            f"unknown variant {variant}; choose among: {variant_names}", where=f"--addons {ADDON_NAME}={variant}"
        )
    return VARIANTS[variant]()


def _build_openshift_variant() -> AddOn:
    return AddOn(
        ADDON_NAME,
        description="simulates the OpenShift GitOps operator and its installation; no Argo CD runs "
        f"({kinds_and_labels.SIMULATED_NOTE})",
        controllers=[ArgoCDOperator(), WorkloadSimulator()],
        definitions=[load_definition(name) for name in all_definitions()],
        initial_manifests=initial_objects.build_openshift_objects(),
        embedded_only=True,
    )


def _build_plain_variant() -> AddOn:
    """Build the variant with the kinds of a cluster without OpenShift; in particular, without the kind ArgoCD."""
    operator_crds = ("argocds.argoproj.io",)
    crd_names = [
        name for name in all_definitions() if name not in operator_crds and not name.endswith(OPENSHIFT_CRD_SUFFIXES)
    ]
    return AddOn(
        f"{ADDON_NAME}=plain",
        description="simulates an Argo CD installed without an operator; no Argo CD runs "
        f"({kinds_and_labels.SIMULATED_NOTE})",
        controllers=[WorkloadSimulator((*WORKLOAD_KINDS, POD))],
        definitions=[load_definition(name) for name in crd_names],
        initial_manifests=initial_objects.build_plain_objects(),
        embedded_only=True,
    )


VARIANTS: Final[dict[str, Callable[[], AddOn]]] = {"": _build_openshift_variant, "plain": _build_plain_variant}
