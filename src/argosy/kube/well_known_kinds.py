"""Kinds and API versions that several packages name, each defined once.

In: nothing. Out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.resource_key import GroupKind

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
EVENT: Final = GroupKind("", "Event")
NAMESPACE: Final = GroupKind("", "Namespace")
NODE: Final = GroupKind("", "Node")
PERSISTENT_VOLUME: Final = GroupKind("", "PersistentVolume")
PERSISTENT_VOLUME_CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
POD: Final = GroupKind("", "Pod")
REPLICATION_CONTROLLER: Final = GroupKind("", "ReplicationController")
RESOURCE_QUOTA: Final = GroupKind("", "ResourceQuota")
SECRET: Final = GroupKind("", "Secret")
SERVICE: Final = GroupKind("", "Service")
CRD: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
DAEMON_SET: Final = GroupKind("apps", "DaemonSet")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
REPLICA_SET: Final = GroupKind("apps", "ReplicaSet")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
APP_PROJECT: Final = GroupKind("argoproj.io", "AppProject")
APPLICATION: Final = GroupKind("argoproj.io", "Application")
APPLICATION_SET: Final = GroupKind("argoproj.io", "ApplicationSet")
ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
CRON_JOB: Final = GroupKind("batch", "CronJob")
JOB: Final = GroupKind("batch", "Job")
BUILD: Final = GroupKind("build.openshift.io", "Build")
BUILD_CONFIG: Final = GroupKind("build.openshift.io", "BuildConfig")
LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
DATA_SCIENCE_CLUSTER: Final = GroupKind("datasciencecluster.opendatahub.io", "DataScienceCluster")
NOTEBOOK_JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")
CLUSTER_SERVICE_VERSION: Final = GroupKind("operators.coreos.com", "ClusterServiceVersion")
OPERATOR_GROUP: Final = GroupKind("operators.coreos.com", "OperatorGroup")
SUBSCRIPTION: Final = GroupKind("operators.coreos.com", "Subscription")
ROUTE: Final = GroupKind("route.openshift.io", "Route")
INFERENCE_SERVICE: Final = GroupKind("serving.kserve.io", "InferenceService")
STORAGE_CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")

ARGOPROJ_API_VERSION: Final = "argoproj.io/v1alpha1"
AUTHENTICATION_API_VERSION: Final = "authentication.k8s.io/v1"
AUTHORIZATION_API_VERSION: Final = "authorization.k8s.io/v1"
CLI_API_VERSION: Final = "cli.argosy.dev/v1"  # of what the commands print as JSON and YAML
