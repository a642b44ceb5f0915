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
from argosy.kube.schema.field_error import Fault
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.store import Store

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
RESERVED = 10  # at the start of the network, for the cluster itself
Key = tuple[str, str]


class Services:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners: dict[str | int, Key] | None = None  # of addresses and ports; loaded on first use
        self._numbers: dict[Key, list[str | int]] = {}
        store.on_refusal(self._forget)

    def _forget(self) -> None:
        self._owners, self._numbers = None, {}

    def complete(self, service: Manifest, old: Manifest | None) -> Manifest:
        """Set a cluster IP, and node ports if the type needs them; an update keeps its allocations."""
        if old is not None:
            service = defaults.carry_allocated(service, old)
        handed: set[int] = {each.get("nodePort", 0) for each in (service.get("spec") or {}).get("ports") or []}
        return defaults.allocate_service(service, self._free_address(), lambda: self._free_port(handed))

    def stored(self, service: Manifest, *, gone: bool = False) -> None:
        """Must be called for every write when it is staged."""
        owners, key = self._known(), _key(service)
        for number in self._numbers.pop(key, ()):
            if owners.get(number) == key:
                del owners[number]
        if not gone:
            self._numbers[key] = _numbers(service.get("spec") or {})
            owners |= dict.fromkeys(self._numbers[key], key)

    def faults(self, service: Manifest) -> list[Fault]:
        """k8s: refuse addresses and ports of another Service, and addresses outside the range."""
        key, spec, found = _key(service), service.get("spec") or {}, []
        addresses = [each for each in spec.get("clusterIPs") or [] if each not in ("", "None")]
        for address in addresses:
            if problem := self._address_problem(address, key):
                detail = f"failed to allocate IP {address}: {problem}"
                shown = "[]string{" + ", ".join(f'"{each}"' for each in addresses) + "}"
                found.append(field_error.invalid("spec.clusterIPs", shown, detail))
        for index, port in enumerate(spec.get("ports") or []):
            number = port.get("nodePort")
            if number and (problem := self._port_problem(number, key)):
                found.append(field_error.invalid(f"spec.ports[{index}].nodePort", str(number), problem))
        return found

    def _address_problem(self, address: str, key: Key) -> str:
        if self._known().get(address, key) != key:
            return "provided IP is already allocated"
        try:
            inside = ipaddress.ip_address(address) in NETWORK
        except ValueError:
            return ""  # the kind's own validation reports it
        words = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {NETWORK}"
        return "" if inside else words

    def _port_problem(self, number: int, key: Key) -> str:
        return "provided port is already allocated" if self._known().get(number, key) != key else ""

    def _free_port(self, handed: set[int]) -> int:
        """Pick a node port that neither another Service nor this one uses."""
        owners = self._known()
        free = (each for each in _shuffled(NODE_PORTS) if each not in handed and each not in owners)
        if (number := next(free, None)) is None:
            raise status_errors.internal("failed to allocate a nodePort: range is full")
        handed.add(number)
        return number

    def _free_address(self) -> str:
        owners, first = self._known(), int(NETWORK.network_address)
        hosts = _shuffled(range(first + RESERVED, first + NETWORK.num_addresses - 1))
        free = (text for number in hosts if (text := str(ipaddress.IPv4Address(number))) not in owners)
        if (address := next(free, None)) is None:
            raise status_errors.internal("failed to allocate a serviceIP: range is full")
        return address

    def _known(self) -> dict[str | int, Key]:
        if self._owners is None:
            self._owners = {}
            for entry in self._store.list("services"):
                self.stored(orjson.loads(entry.body))
        return self._owners


def _key(service: Manifest) -> Key:
    return service["metadata"].get("namespace", ""), service["metadata"]["name"]


def _numbers(spec: Manifest) -> list[str | int]:
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
    numbers: list[Any] = [each for each in addresses if each not in (None, "", "None")]
    numbers += [port["nodePort"] for port in spec.get("ports") or [] if port.get("nodePort")]
    return [*numbers, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else numbers


def _shuffled(numbers: range) -> Iterator[int]:
    """All numbers from a random start, so that two servers rarely allocate the same ones."""
    start = secrets.randbelow(len(numbers))
    yield from numbers[start:]
    yield from numbers[:start]
