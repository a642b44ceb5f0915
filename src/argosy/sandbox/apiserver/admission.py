"""Admission: namespace lifecycle, Service addresses, default classes, service accounts, quotas, add-ons' admitters.

In: a served kind and a manifest. Out: the mutated manifest, or an error. Never: writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from argosy.errors import UserError
from argosy.kube.client import AdmissionHandler
from argosy.kube.objects import Manifest
from argosy.kube.patch.managed_fields import record_update
from argosy.kube.schema import crd
from argosy.kube.schema.field_error import FieldError
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.quota_admission import QuotaChecker
from argosy.sandbox.apiserver.resource_catalog import ResourceCatalog
from argosy.sandbox.apiserver.service_ip_port_allocator import ServiceAllocator
from argosy.sandbox.store import Store

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"


class AdmissionChain:
    def __init__(self, store: Store, catalog: ResourceCatalog) -> None:
        self._store = store
        self._catalog = catalog
        self._service_allocator = ServiceAllocator(store)
        self._quotas = QuotaChecker(store)
        self.admitters: Sequence[AdmissionHandler] = ()

    def check_namespace(self, served: ApiKind, namespace: str, name: str) -> None:
        """k8s: objects can only be created in a namespace that exists and is not terminating."""
        if not served.resource.namespaced:
            return
        entry = self._store.get_latest("namespaces", "", namespace)
        if entry is None:
            namespaces = self._catalog.find_resource("", "v1", "namespaces")
            assert namespaces is not None
            raise status_errors.not_found(namespaces.resource, namespace)
        if b'"deletionTimestamp"' in entry.body and "deletionTimestamp" in orjson.loads(entry.body)["metadata"]:
            raise status_errors.namespace_terminating(served.resource, name, namespace)

    def mutate(self, served: ApiKind, manifest: Manifest, old: Manifest | None = None) -> Manifest:
        match served.resource.group, served.resource.kind:
            case "", "Service":
                return self._service_allocator.allocate(manifest, old)
            case "", "PersistentVolumeClaim" if old is None:
                return self._set_default_storage_class(manifest)
            case "", "Pod" if old is None:
                return self._set_service_account(served, manifest)
            case "apiextensions.k8s.io", "CustomResourceDefinition":
                return crd.apply_definition_defaults(manifest)
        return manifest

    def run_admitters(self, served: ApiKind, manifest: Manifest, old: Manifest | None, now: str) -> Manifest:
        """Run the admitters of add-ons. Fields that they set are owned by them, not by the client."""
        resource = served.resource
        for admitter in self.admitters:
            if (resource.group, resource.kind) != admitter.kind:
                continue
            try:
                changed = admitter.admit(manifest, old)
            except UserError as error:
                raise status_errors.webhook_denied(
                    resource, manifest["metadata"]["name"], admitter.name, error.message
                ) from error
            if changed != manifest:
                # k8s: fields set by a webhook have no owner; here they have one, so that users see who set them
                changed = record_update(
                    manifest,
                    served.apply_defaults(changed),
                    empty_object=served.zero_value,
                    manager=admitter.manager,
                    api_version=resource.api_version,
                    subresource="",
                    now=now,
                    shape=served.shape,
                )
                manifest = {**changed, "metadata": meta.order_metadata(changed["metadata"])}
        return manifest

    def list_warnings(self, served: ApiKind, manifest: Manifest) -> list[str]:
        """Warnings of admitters for the client."""
        kind = (served.resource.group, served.resource.kind)
        warn_functions = [
            admitter.warn for admitter in self.admitters if admitter.kind == kind and admitter.warn is not None
        ]
        return [text for warn in warn_functions for text in warn(manifest)]

    def validate(self, served: ApiKind, manifest: Manifest, old: Manifest | None) -> Sequence[FieldError]:
        match served.resource.group, served.resource.kind:
            case "", "Service":
                return self._service_allocator.validate(manifest)
        return ()

    def on_staged(self, served: ApiKind, manifest: Manifest, *, is_deleted: bool = False) -> None:
        """Must be called for every write when it is staged."""
        if served.bucket == "services":
            self._service_allocator.on_staged(manifest, is_deleted=is_deleted)
        self._quotas.on_staged(served, manifest, is_deleted=is_deleted)

    def check_quotas(self, served: ApiKind, manifest: Manifest) -> None:
        """k8s: quotas are checked last."""
        self._quotas.check(served, manifest)

    def _set_service_account(self, served: ApiKind, pod: Manifest) -> Manifest:
        """k8s: the ServiceAccount admission plugin; both spellings of the field are set.

        `default` need not exist yet: it is created just after its namespace, and a real server waits for it.
        """
        spec, metadata = pod.get("spec") or {}, pod["metadata"]
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        namespace = metadata["namespace"]
        if account != "default" and self._store.get_latest("serviceaccounts", namespace, account) is None:
            reason = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise status_errors.forbidden(served.resource, metadata["name"], reason)
        return {**pod, "spec": {**spec, "serviceAccountName": account, "serviceAccount": account}}

    # -- claims --------------------------------------------------------------------------------------------------

    def _set_default_storage_class(self, claim: Manifest) -> Manifest:
        """k8s: a claim without a class gets the default one, the newest if there are several."""
        spec = claim.get("spec") or {}
        if spec.get("storageClassName") is not None:
            return claim
        default_classes = [
            entry
            for entry in self._store.list("storage.k8s.io/storageclasses")
            if _is_default_storage_class(entry.body)
        ]
        if not default_classes:
            return claim
        newest = max(default_classes, key=lambda entry: entry.revision)
        return {**claim, "spec": {**spec, "storageClassName": newest.name}}


def _is_default_storage_class(body: bytes) -> bool:
    annotations = orjson.loads(body)["metadata"].get("annotations") or {}
    return bool(annotations.get(DEFAULT_CLASS_ANNOTATION) == "true")
