"""Admission: namespace lifecycle, Service addresses, default classes, service accounts, quotas, add-ons' admitters.

In: a served kind and a manifest. Out: the mutated manifest, or an error. Never: writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from argosy.errors import UserError
from argosy.kube.client import Admitter
from argosy.kube.objects import Manifest
from argosy.kube.patch.managed_fields import record_update
from argosy.kube.schema import crd
from argosy.kube.schema.field_error import Fault
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.resource_catalog import Catalog
from argosy.sandbox.apiserver.resource_quota import Quotas
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.apiserver.service_addresses import Services
from argosy.sandbox.store import Store

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class Admission:
    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._services = Services(store)
        self._quotas = Quotas(store)
        self.admitters: Sequence[Admitter] = ()

    def check_namespace(self, served: Served, namespace: str, name: str) -> None:
        """k8s: objects can only be created in a namespace that exists and is not terminating."""
        if not served.resource.namespaced:
            return
        entry = self._store.latest("namespaces", "", namespace)
        if entry is None:
            namespaces = self._catalog.at("", "v1", "namespaces")
            assert namespaces is not None
            raise status_errors.not_found(namespaces.resource, namespace)
        if b'"deletionTimestamp"' in entry.body and "deletionTimestamp" in orjson.loads(entry.body)["metadata"]:
            raise status_errors.namespace_terminating(served.resource, name, namespace)

    def complete(self, served: Served, manifest: Manifest, old: Manifest | None = None) -> Manifest:
        match served.resource.group, served.resource.kind:
            case "", "Service":
                return self._services.complete(manifest, old)
            case "", "PersistentVolumeClaim" if old is None:
                return self._classed(manifest)
            case "", "Pod" if old is None:
                return self._with_account(served, manifest)
            case "apiextensions.k8s.io", "CustomResourceDefinition":
                return crd.with_definition_defaults(manifest)
        return manifest

    def admitted(self, served: Served, manifest: Manifest, old: Manifest | None, now: str) -> Manifest:
        """Run the admitters of add-ons. Fields that they set are owned by them, not by the client."""
        resource = served.resource
        for each in self.admitters:
            if (resource.group, resource.kind) != each.kind:
                continue
            try:
                changed = each.admit(manifest, old)
            except UserError as error:
                raise status_errors.denied(resource, manifest["metadata"]["name"], each.name, error.message) from error
            if changed != manifest:
                # k8s: fields set by a webhook have no owner; here they have one, so that users see who set them
                changed = record_update(
                    manifest,
                    served.complete(changed),
                    zero=served.zero,
                    manager=each.manager,
                    api_version=resource.api_version,
                    subresource="",
                    now=now,
                    shape=served.shape,
                )
                manifest = {**changed, "metadata": meta.ordered(changed["metadata"])}
        return manifest

    def warnings(self, served: Served, manifest: Manifest) -> list[str]:
        """Warnings of admitters for the client."""
        kind = (served.resource.group, served.resource.kind)
        asked = [each.warn for each in self.admitters if each.kind == kind and each.warn is not None]
        return [text for warn in asked for text in warn(manifest)]

    def faults(self, served: Served, manifest: Manifest, old: Manifest | None) -> Sequence[Fault]:
        match served.resource.group, served.resource.kind:
            case "", "Service":
                return self._services.faults(manifest)
        return ()

    def stored(self, served: Served, manifest: Manifest, *, gone: bool = False) -> None:
        """Must be called for every write when it is staged."""
        if served.bucket == "services":
            self._services.stored(manifest, gone=gone)
        self._quotas.stored(served, manifest, gone=gone)

    def check_quotas(self, served: Served, manifest: Manifest) -> None:
        """k8s: quotas are checked last."""
        self._quotas.check(served, manifest)

    def _with_account(self, served: Served, pod: Manifest) -> Manifest:
        """k8s: the ServiceAccount admission plugin; both spellings of the field are set.

        `default` need not exist yet: it is created just after its namespace, and a real server waits for it.
        """
        spec, metadata = pod.get("spec") or {}, pod["metadata"]
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        namespace = metadata["namespace"]
        if account != "default" and self._store.latest("serviceaccounts", namespace, account) is None:
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise status_errors.forbidden(served.resource, metadata["name"], why)
        return {**pod, "spec": {**spec, "serviceAccountName": account, "serviceAccount": account}}

    # -- claims --------------------------------------------------------------------------------------------------

    def _classed(self, claim: Manifest) -> Manifest:
        """k8s: a claim without a class gets the default one, the newest if there are several."""
        spec = claim.get("spec") or {}
        if spec.get("storageClassName") is not None:
            return claim
        found = [entry for entry in self._store.list("storage.k8s.io/storageclasses") if _is_default(entry.body)]
        if not found:
            return claim
        newest = max(found, key=lambda entry: entry.revision)
        return {**claim, "spec": {**spec, "storageClassName": newest.name}}


def _is_default(body: bytes) -> bool:
    annotations = orjson.loads(body)["metadata"].get("annotations") or {}
    return bool(annotations.get(DEFAULT_CLASS) == "true")
