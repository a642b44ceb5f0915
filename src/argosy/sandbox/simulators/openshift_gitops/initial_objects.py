"""Builds the objects of a fresh installation: OpenShift GitOps as an administrator installs it, or a plain Argo CD.

In: nothing. Out: manifests, in the order in which they can be created. Never: runs a program.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops import config_maps
from argosy.sandbox.simulators.openshift_gitops.constants import BY, NAME, PART_OF, POLICY, SETTINGS, simulated
from argosy.sandbox.simulators.openshift_gitops.workloads import deployment, stateful_set

GITOPS: Final = "openshift-gitops"
OPERATOR: Final = "openshift-gitops-operator"
VERSION: Final = f"{OPERATOR}.v0.0.0-simulated"
PLAIN: Final = "argocd"
ADMINISTRATORS: Final = "g, system:cluster-admins, role:admin\ng, cluster-admins, role:admin\n"


def openshift() -> Sequence[Manifest]:
    """Build the objects the administrator creates; the operator creates the rest from the ArgoCD resource."""
    return [
        *(simulated("v1", "Namespace", name) for name in (OPERATOR, "openshift-operators", GITOPS)),
        simulated("operators.coreos.com/v1", "OperatorGroup", OPERATOR, OPERATOR, spec={"upgradeStrategy": "Default"}),
        _subscription(),
        _installed_version(),
        deployment(f"{OPERATOR}-controller-manager", OPERATOR, {"control-plane": "gitops-operator"}),
        # guides look for the operator's log under this name in these namespaces
        *(deployment(OPERATOR, namespace, {"control-plane": "gitops-operator"}) for namespace in (OPERATOR, GITOPS)),
        deployment("cluster", GITOPS, {"app.kubernetes.io/component": "gitops-backend"}),
        _argocd(),
        _project(GITOPS),
    ]


def plain() -> Sequence[Manifest]:
    """Build an Argo CD without operator or owner: nothing reverts edits of its ConfigMaps."""
    part = {PART_OF: "argocd"}
    accounts = ("argocd-application-controller", "argocd-server")
    deployments = ("server", "repo-server", "redis", "applicationset-controller", "notifications-controller")
    return [
        simulated("v1", "Namespace", PLAIN),
        *(simulated("v1", "ConfigMap", name, PLAIN, {NAME: name, **part}) for name in (SETTINGS, POLICY)),
        _first_password(),
        *(simulated("v1", "ServiceAccount", name, PLAIN, {NAME: name, **part}) for name in accounts),
        *(deployment(f"argocd-{name}", PLAIN, part) for name in deployments),
        stateful_set("argocd-application-controller", PLAIN, part, "argocd-application-controller"),
        _project(PLAIN),
    ]


def _subscription() -> Manifest:
    spec = {
        "channel": "latest",
        "installPlanApproval": "Automatic",
        "name": OPERATOR,
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "startingCSV": VERSION,
    }
    return simulated("operators.coreos.com/v1alpha1", "Subscription", OPERATOR, OPERATOR, spec=spec)


def _installed_version() -> Manifest:
    spec = {
        "displayName": f"Red Hat OpenShift GitOps ({BY})",
        "version": "0.0.0-simulated",
        "install": {"strategy": "deployment", "spec": {"deployments": []}},
    }
    return simulated("operators.coreos.com/v1alpha1", "ClusterServiceVersion", VERSION, OPERATOR, spec=spec)


def _argocd() -> Manifest:
    """argo: the defaults of OpenShift GitOps: Tekton runs are excluded, and there is no default role."""
    spec = {
        "applicationSet": {},
        "controller": {},
        "rbac": {"defaultPolicy": "", "policy": ADMINISTRATORS, "scopes": "[groups]"},
        "redis": {},
        "repo": {},
        "resourceExclusions": config_maps.exclusions((("tekton.dev",), ("TaskRun", "PipelineRun"))),
        "server": {"route": {"enabled": True}},
    }
    return simulated("argoproj.io/v1beta1", "ArgoCD", GITOPS, GITOPS, spec=spec)


def _first_password() -> Manifest:
    data = {"password": secrets.token_urlsafe(24)}
    return simulated("v1", "Secret", "argocd-initial-admin-secret", PLAIN, type="Opaque", stringData=data)


def _project(namespace: str) -> Manifest:
    everything = {"group": "*", "kind": "*"}
    spec = {
        "clusterResourceWhitelist": [everything],
        "destinations": [{"namespace": "*", "server": "*"}],
        "sourceRepos": ["*"],
    }
    return simulated("argoproj.io/v1alpha1", "AppProject", "default", namespace, spec=spec)
