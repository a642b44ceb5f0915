"""Allocates cluster IPs and node ports to Services.

In: Services as they are staged. Out: free addresses and ports, and field errors for those in use.
Never: keeps an allocation of a failed write.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator
from typing import Any

import orjson

from argosy.kube.objects import Manifest
from argosy.kube.schema import defaults, field_error
from argosy.kube.schema.field_error import FieldError
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.store import Store

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
RESERVED_ADDRESSES = 10  # at the start of the network, for the cluster itself
ServiceKey = tuple[str, str]


class ServiceAllocator:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners: dict[str | int, ServiceKey] | None = None  # of addresses and ports; loaded on first use
        self._allocations: dict[ServiceKey, list[str | int]] = {}
        store.add_refusal_callback(self._reset)

    def _reset(self) -> None:
        self._owners, self._allocations = None, {}

    def allocate(self, service: Manifest, old: Manifest | None) -> Manifest:
        """Set a cluster IP, and node ports if the type needs them; an update keeps its allocations."""
        if old is not None:
            service = defaults.keep_allocated_fields(service, old)
        used_ports: set[int] = {port.get("nodePort", 0) for port in (service.get("spec") or {}).get("ports") or []}
        return defaults.allocate_service(service, self._find_free_address(), lambda: self._allocate_port(used_ports))

    def on_staged(self, service: Manifest, *, is_deleted: bool = False) -> None:
        """Must be called for every write when it is staged."""
        owners, key = self._load_owners(), _service_key(service)
        for allocation in self._allocations.pop(key, ()):
            if owners.get(allocation) == key:
                del owners[allocation]
        if not is_deleted:
            self._allocations[key] = _list_allocations(service.get("spec") or {})
            owners |= dict.fromkeys(self._allocations[key], key)

    def validate(self, service: Manifest) -> list[FieldError]:
        """k8s: refuse addresses and ports of another Service, and addresses outside the range."""
        key, spec, field_errors = _service_key(service), service.get("spec") or {}, []
        addresses = [cluster_ip for cluster_ip in spec.get("clusterIPs") or [] if cluster_ip not in ("", "None")]
        for address in addresses:
            if problem := self._find_address_problem(address, key):
                detail = f"failed to allocate IP {address}: {problem}"
                shown_addresses = "[]string{" + ", ".join(f'"{cluster_ip}"' for cluster_ip in addresses) + "}"
                field_errors.append(field_error.invalid("spec.clusterIPs", shown_addresses, detail))
        for index, port in enumerate(spec.get("ports") or []):
            number = port.get("nodePort")
            if number and (problem := self._find_port_problem(number, key)):
                field_errors.append(field_error.invalid(f"spec.ports[{index}].nodePort", str(number), problem))
        return field_errors

    def _find_address_problem(self, address: str, key: ServiceKey) -> str:
        if self._load_owners().get(address, key) != key:
            return "provided IP is already allocated"
        try:
            is_in_network = ipaddress.ip_address(address) in SERVICE_NETWORK
        except ValueError:
            return ""  # the kind's own validation reports it
        message = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {SERVICE_NETWORK}"
        return "" if is_in_network else message

    def _find_port_problem(self, number: int, key: ServiceKey) -> str:
        return "provided port is already allocated" if self._load_owners().get(number, key) != key else ""

    def _allocate_port(self, used_ports: set[int]) -> int:
        """Pick a node port that neither another Service nor this one uses."""
        owners = self._load_owners()
        free = (
            candidate
            for candidate in _iterate_from_random_start(NODE_PORTS)
            if candidate not in used_ports and candidate not in owners
        )
        if (number := next(free, None)) is None:
            raise status_errors.internal_error("failed to allocate a nodePort: range is full")
        used_ports.add(number)
        return number

    def _find_free_address(self) -> str:
        owners, first_address = self._load_owners(), int(SERVICE_NETWORK.network_address)
        hosts = _iterate_from_random_start(
            range(first_address + RESERVED_ADDRESSES, first_address + SERVICE_NETWORK.num_addresses - 1)
        )
        free = (text for number in hosts if (text := str(ipaddress.IPv4Address(number))) not in owners)
        if (address := next(free, None)) is None:
            raise status_errors.internal_error("failed to allocate a serviceIP: range is full")
        return address

    def _load_owners(self) -> dict[str | int, ServiceKey]:
        if self._owners is None:
            self._owners = {}
            for entry in self._store.list("services"):
                self.on_staged(orjson.loads(entry.body))
        return self._owners


def _service_key(service: Manifest) -> ServiceKey:
    return service["metadata"].get("namespace", ""), service["metadata"]["name"]


def _list_allocations(spec: Manifest) -> list[str | int]:
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
    allocations: list[Any] = [address for address in addresses if address not in (None, "", "None")]
    allocations += [port["nodePort"] for port in spec.get("ports") or [] if port.get("nodePort")]
    return [*allocations, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else allocations


def _iterate_from_random_start(numbers: range) -> Iterator[int]:
    """All numbers from a random start, so that two servers rarely allocate the same ones."""
    start = secrets.randbelow(len(numbers))
    yield from numbers[start:]
    yield from numbers[:start]
