"""Provenance of secret values: which Secrets the texts about an Application may quote.

In: Applications, projects and the objects that hold secret values. Out: SecretScope and SecretOrigin values. Never: a
Secret of another tenant in the scope of an Application, whatever the Application or the Secret claims.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.application import IN_CLUSTER, Destination, read_application, read_destination
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.destination_cluster_lookup import KnownCluster
from argosy.gitops.policy.projects import list_violations, permits_destination, permits_kind
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.controller.cache import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from argosy.languages.globs import matches_glob
from argosy.observability.redaction.guessable_values import find_guessable_forms
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin, SecretScope
from argosy.observability.redaction.secret_text_extraction import SECRET_TYPE_LABEL

# Fields without values. Anything not listed stays masked: patches, plug-in parameters, chart values.
PUBLIC_SOURCE_FIELDS: Final = ("repoURL", "path", "targetRevision", "chart", "ref", "name")
DELIVERED_STATUSES: Final = ("Synced", "Pruned")
REVISION_FIELDS: Final = ("revision", "revisions")
# A project that may deliver one of these to a namespace can read every Secret there: a Pod may mount them.
POD_KINDS: Final = (
    POD, REPLICATION_CONTROLLER, DEPLOYMENT,
    STATEFUL_SET, DAEMON_SET, REPLICA_SET,
    JOB, CRON_JOB,
)  # fmt: skip


def build_scope(
    application: Manifest,
    project: Manifest | None,
    *,
    has_remote_secrets: bool = False,
    is_delivered: Callable[[str], bool] = lambda namespace: False,
    git_words: Container[str] | None = None,
    control_namespace: str = "",
) -> SecretScope:
    """Return the scope of an Application: its project, and the namespaces that its project lets it deliver to.

    A namespace that the project no longer permits stays in the scope if the Application delivered to it: by its status,
    or if `is_delivered` finds its objects there. If the project cannot be read, all namespaces stay. Namespaces of
    another cluster count only if Secrets of other clusters are known, too. `git_words`: words in the manifests of the
    Application.
    """
    spec, status = as_mapping(application.get("spec")), as_mapping(application.get("status"))
    wire_destination = as_mapping(spec.get("destination"))
    destination = read_destination(*(str(wire_destination.get(name) or "") for name in ("server", "name", "namespace")))
    results = as_mapping(as_mapping(status.get("operationState")).get("syncResult")).get("resources")
    rows = [*as_mappings(status.get("resources")), *as_mappings(results)]
    namespaces = {destination.namespace, *(str(row.get("namespace") or "") for row in rows)} - {""}
    if not destination.is_in_cluster and not has_remote_secrets:
        namespaces = set()
    readable: frozenset[str] = frozenset()
    if project is not None:
        delivered = {str(row.get("namespace") or "") for row in rows if row.get("status") in DELIVERED_STATUSES}
        with suppress(ArgosyError):
            parsed_project = read_project(project, "project")
            namespaces = {
                name
                for name in namespaces
                if name in delivered
                or _permits_namespace(parsed_project, destination._replace(namespace=name))
                or is_delivered(name)
            }
            if destination.is_in_cluster and not has_remote_secrets:  # namespaces of other clusters have the same names
                readable = _find_readable_namespaces(application, parsed_project, namespaces, control_namespace)
    words = "\n".join(dict.fromkeys(_iter_public_words(application)))
    name = str(spec.get("project") or "default")
    return SecretScope(name, frozenset(namespaces), words, git_words=git_words if readable else None, readable=readable)


def is_in_scoped_cluster(application: Manifest, namespace: str, clusters: Iterable[KnownCluster]) -> bool:
    """True if the Application may deliver to a namespace because the Secret of its cluster names its project."""
    spec = as_mapping(application.get("spec"))
    wire_destination = as_mapping(spec.get("destination"))
    server, name = (str(wire_destination.get(field) or "") for field in ("server", "name"))
    destination = read_destination(server, name, namespace).with_in_cluster_alias
    return any(
        cluster.project == str(spec.get("project") or "default")
        and (destination.server == cluster.server if destination.server else destination.name == cluster.name)
        and (not cluster.namespaces or namespace in cluster.namespaces)
        for cluster in clusters
    )


def _find_readable_namespaces(
    application: Manifest, project: Project, namespaces: Iterable[str], control_namespace: str
) -> frozenset[str]:
    """Return the namespaces that the Application may deliver Pods to now. Empty if syncs impersonate a service account,
    whose rights are not known here. Raises ArgosyError.
    """
    app = read_application(application)
    if project.service_accounts or list_violations(project, app, control_namespace=control_namespace):
        return frozenset()
    if not any(permits_kind(project, kind, is_namespaced=True) for kind in POD_KINDS):
        return frozenset()
    return frozenset(name for name in namespaces if permits_destination(project, Destination(*IN_CLUSTER, name)))


def _permits_namespace(project: Project, destination: Destination) -> bool:
    """True if the project permits the destination. For another cluster only the namespace is compared: it has two
    names.
    """
    if destination.is_in_cluster:
        return permits_destination(project, Destination(*IN_CLUSTER, destination.namespace))
    return any(matches_glob(entry.namespace, destination.namespace) for entry in project.destinations)


def find_origin(key: ResourceKey, cache: InformerCache, control_namespace: str) -> SecretOrigin | None:
    """Return where a secret value comes from; None if the object is gone."""
    manifest = cache.get(key)
    if manifest is None:
        return None
    if control_namespace and key.namespace != control_namespace:
        return SecretOrigin(key.namespace)
    return SecretOrigin(key.namespace, read_declared_project(manifest), True, find_guessable_forms(manifest))


def read_declared_project(secret: Manifest) -> str:
    """argo: a repository or cluster may be declared for one project only."""
    labels, data = as_mapping(as_mapping(secret.get("metadata")).get("labels")), as_mapping(secret.get("data"))
    encoded = data.get("project")
    if SECRET_TYPE_LABEL not in labels or not isinstance(encoded, str):
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _iter_public_words(application: Manifest) -> Iterator[str]:
    """Yield commits, paths, options and names of an Application: texts in Git outside of its Secrets."""
    metadata, status = as_mapping(application.get("metadata")), as_mapping(application.get("status"))
    yield from (str(metadata.get(name) or "") for name in ("name", "namespace"))
    yield from _iter_spec_words(as_mapping(application.get("spec")))
    state = as_mapping(status.get("operationState"))
    for holder in (status.get("sync"), state.get("syncResult"), *as_mappings(status.get("history"))):
        for name in REVISION_FIELDS:
            yield from _iter_option_texts(as_mapping(holder).get(name))
    for row in as_mappings(status.get("resources")):
        yield from (str(row.get(name) or "") for name in ("kind", "namespace", "name"))


def _iter_spec_words(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield options by an allow-list: an unknown field may hold a secret value."""
    yield from _iter_option_texts(spec.get("project"))
    yield from _iter_option_texts(
        [as_mapping(spec.get("destination")).get(name) for name in ("server", "name", "namespace")]
    )
    yield from _iter_option_texts(as_mapping(spec.get("syncPolicy")).get("syncOptions"))
    for source in (as_mapping(spec.get("source")), *as_mappings(spec.get("sources"))):
        yield from _iter_option_texts([source.get(name) for name in PUBLIC_SOURCE_FIELDS])
        helm, kustomize = as_mapping(source.get("helm")), as_mapping(source.get("kustomize"))
        yield from _iter_option_texts([helm.get("releaseName"), helm.get("valueFiles"), kustomize.get("images")])
        yield from _iter_option_texts([row.get("name") for row in as_mappings(helm.get("parameters"))])


def _iter_option_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if "@" not in value or "://" not in value:  # a URL may contain a password
            yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_option_texts(inner)
