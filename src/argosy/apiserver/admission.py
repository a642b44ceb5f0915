"""What a server adds to or asks of an object beyond its kind's rules: living namespaces, addresses, default classes.

In: a served kind and a manifest. Out: the manifest completed, or a refusal. Never: writes.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator, Sequence

import orjson

from argosy.apiserver import refusals
from argosy.apiserver.catalog import Catalog
from argosy.apiserver.served import Served
from argosy.apiserver.store import Store
from argosy.model.manifest import Manifest
from argosy.schema import custom, defaults, fault
from argosy.schema.fault import Fault

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
DEFINITION = "CustomResourceDefinition"


class Admission:
    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._addresses: set[str] | None = None

    def check_namespace(self, served: Served, namespace: str, name: str) -> None:
        """k8s: objects are made only in a namespace that exists and is not on its way out."""
        if not served.resource.namespaced:
            return
        entry = self._store.latest("namespaces", "", namespace)
        if entry is None:
            namespaces = self._catalog.at("", "v1", "namespaces")
            assert namespaces is not None
            raise refusals.not_found(namespaces.resource, namespace)
        if b'"deletionTimestamp"' in entry.body:
            raise refusals.namespace_terminating(served.resource, name, namespace)

    def complete(self, served: Served, manifest: Manifest, *, dry_run: bool, old: Manifest | None = None) -> Manifest:
        match served.resource.group, served.resource.kind:
            case "", "Service":
                return self._addressed(manifest, old, dry_run=dry_run)
            case "", "PersistentVolumeClaim" if old is None:
                return self._classed(manifest)
            case "", "Pod" if old is None:
                return _with_account(manifest)
            case "apiextensions.k8s.io", "CustomResourceDefinition":
                return custom.with_definition_defaults(manifest)
        return manifest

    def faults(self, served: Served, manifest: Manifest, old: Manifest | None) -> Sequence[Fault]:
        match served.resource.group, served.resource.kind:
            case "apiextensions.k8s.io", "CustomResourceDefinition":
                return custom.check_definition(manifest, old)
            case "", "Service":
                return self._taken(manifest, old)
        return ()

    def released(self, served: Served, manifest: Manifest) -> None:
        if served.bucket == "services" and self._addresses is not None:
            self._addresses.discard((manifest.get("spec") or {}).get("clusterIP", ""))

    # -- Services ------------------------------------------------------------------------------------------------

    def _addressed(self, service: Manifest, old: Manifest | None, *, dry_run: bool) -> Manifest:
        """A cluster address, and node ports where the type asks for them; an update keeps what it had."""
        if old is not None:
            service = defaults.carry_allocated(service, old)
        taken: set[int] = set()
        completed = defaults.allocate_service(service, self._free_address(), lambda: self._free_port(taken))
        address = (completed.get("spec") or {}).get("clusterIP", "")
        if not dry_run and self._addresses is not None and address:
            self._addresses.add(address)
        return completed

    def _free_port(self, taken: set[int]) -> int:
        """One that neither another Service nor this one has."""
        if not taken:
            taken |= {each.get("nodePort", 0) for spec in self._service_specs() for each in spec.get("ports") or []}
        number = next(each for each in _shuffled(NODE_PORTS) if each not in taken)
        taken.add(number)
        return number

    def _free_address(self) -> str:
        if self._addresses is None:
            self._addresses = {str(spec.get("clusterIP", "")) for spec in self._service_specs()}
        first = int(SERVICE_NETWORK.network_address)
        hosts = _shuffled(range(first + 10, first + SERVICE_NETWORK.num_addresses - 1))
        return next(text for n in hosts if (text := str(ipaddress.IPv4Address(n))) not in self._addresses)

    def _service_specs(self) -> Iterator[Manifest]:
        for entry in self._store.list("services"):
            yield orjson.loads(entry.body).get("spec") or {}

    def _taken(self, service: Manifest, old: Manifest | None) -> list[Fault]:
        """k8s: an address that another Service has is refused."""
        address = (service.get("spec") or {}).get("clusterIP", "")
        if old is not None or address in ("", "None"):
            return []
        name, namespace = service["metadata"]["name"], service["metadata"].get("namespace", "")
        for entry in self._store.list("services"):
            other = orjson.loads(entry.body).get("spec") or {}
            if other.get("clusterIP") == address and (entry.namespace, entry.name) != (namespace, name):
                detail = "failed to allocate IP " + address + ": provided IP is already allocated"
                return [fault.invalid("spec.clusterIPs", f'["{address}"]', detail)]
        return []

    # -- claims --------------------------------------------------------------------------------------------------

    def _classed(self, claim: Manifest) -> Manifest:
        """k8s: a claim that names no class gets the default one, the newest if there are several."""
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


def _with_account(pod: Manifest) -> Manifest:
    """k8s: the ServiceAccount admission step; both spellings of the field are kept."""
    spec = pod.get("spec") or {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    return {**pod, "spec": {**spec, "serviceAccountName": account, "serviceAccount": account}}


def _shuffled(numbers: range) -> Iterator[int]:
    """All of them, starting anywhere, so that two servers rarely hand out the same."""
    start = secrets.randbelow(len(numbers))
    yield from numbers[start:]
    yield from numbers[:start]
