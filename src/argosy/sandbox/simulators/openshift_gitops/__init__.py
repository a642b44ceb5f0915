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
from argosy.kube.schema.bundled_crds import definition
from argosy.kube.schema.bundled_crds import names as all_definitions
from argosy.sandbox.simulators.openshift_gitops import constants, initial_objects
from argosy.sandbox.simulators.openshift_gitops.operator import Operator
from argosy.sandbox.simulators.openshift_gitops.workload_simulator import WORKLOADS, Player

NAME: Final = "argocd_operator"
OPENSHIFT_ONLY: Final = (".openshift.io", ".operators.coreos.com", ".maistra.io", ".opendatahub.io", ".pfe.rhpds.com")


def make(variant: str) -> AddOn:
    if variant not in VARIANTS:
        known = ", ".join(f"{NAME}={each}" if each else NAME for each in VARIANTS)
        raise UserError(f"unknown variant {variant}; choose among: {known}", where=f"--addons {NAME}={variant}")
    return VARIANTS[variant]()


def _openshift() -> AddOn:
    return AddOn(
        NAME,
        about=f"simulates the OpenShift GitOps operator and its installation; no Argo CD runs ({constants.BY})",
        controllers=[Operator(), Player()],
        definitions=[definition(name) for name in all_definitions()],
        first=initial_objects.openshift(),
        embedded_only=True,
    )


def _plain() -> AddOn:
    """Build the variant with the kinds of a cluster without OpenShift; in particular, without the kind ArgoCD."""
    foreign = ("argocds.argoproj.io",)
    kept = [name for name in all_definitions() if name not in foreign and not name.endswith(OPENSHIFT_ONLY)]
    return AddOn(
        f"{NAME}=plain",
        about=f"simulates an Argo CD installed without an operator; no Argo CD runs ({constants.BY})",
        controllers=[Player((*WORKLOADS, constants.POD))],
        definitions=[definition(name) for name in kept],
        first=initial_objects.plain(),
        embedded_only=True,
    )


VARIANTS: Final[dict[str, Callable[[], AddOn]]] = {"": _openshift, "plain": _plain}
