"""Table rows of network, storage, RBAC, webhook and API service kinds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNSET,
    Part,
    addresses,
    age,
    amount,
    condition,
    human_duration,
    name,
    selector,
    some,
    spec,
    status,
)

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def ingress(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    rules = what.get("rules") or ()
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    more = f" + {len(rules) - 3} more..." if len(hosts) >= 3 and len(rules) > 3 else ""
    return [
        name(manifest),
        NONE if what.get("ingressClassName") is None else what["ingressClassName"],
        f"{','.join(hosts[:3])}{more}" if hosts else "*",
        addresses(status(manifest).get("loadBalancer")),
        "80, 443" if what.get("tls") else "80",
        age(manifest, now),
    ]


def ingress_class(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    given = what.get("parameters")
    parameters = NONE
    if given is not None:
        group = f".{given['apiGroup']}" if given.get("apiGroup") is not None else ""
        parameters = f"{given.get('kind') or ''}{group}/{given.get('name') or ''}"
    return [name(manifest), what.get("controller") or "", parameters, age(manifest, now)]


def network_policy(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), selector(spec(manifest).get("podSelector") or {}), age(manifest, now)]


def endpoint_slice(manifest: Part, now: datetime) -> list[Any]:
    ports = []
    for port in manifest.get("ports") or ():
        number, called = port.get("port"), port.get("name")
        ports.append("*" if number is None and called is None else str(called if number is None else number))
    found = [address for each in manifest.get("endpoints") or () for address in each.get("addresses") or ()]
    kind = manifest.get("addressType") or ""
    return [name(manifest), kind, some(ports) or UNSET, some(found) or UNSET, age(manifest, now)]


def disruption_budget(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    low, high = ("N/A" if what.get(each) is None else str(what[each]) for each in ("minAvailable", "maxUnavailable"))
    return [name(manifest), low, high, status(manifest).get("disruptionsAllowed") or 0, age(manifest, now)]


def role_binding(manifest: Part, now: datetime) -> list[Any]:
    ref, subjects = manifest.get("roleRef") or {}, manifest.get("subjects") or ()
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for each in subjects:
        called = str(each.get("name") or "")
        if each.get("kind") == "ServiceAccount":
            called = f"{each.get('namespace') or ''}/{called}"
        named.setdefault(each.get("kind") or "", []).append(called)
    return [
        name(manifest),
        f"{ref.get('kind') or ''}/{ref.get('name') or ''}",
        age(manifest, now),
        ", ".join(named["User"]),
        ", ".join(named["Group"]),
        ", ".join(named["ServiceAccount"]),
    ]


def certificate_request(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    kinds = {each.get("type") for each in how.get("conditions") or ()}
    word = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    word += (",Failed" if "Failed" in kinds else "") + (",Issued" if how.get("certificate") else "")
    seconds = what.get("expirationSeconds")
    return [
        name(manifest),
        age(manifest, now),
        what.get("signerName") or NONE,
        what.get("username") or "",
        NONE if seconds is None else human_duration(seconds),
        word,
    ]


def lease(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), spec(manifest).get("holderIdentity") or "", age(manifest, now)]


def storage_class(manifest: Part, now: datetime) -> list[Any]:
    annotations = manifest["metadata"].get("annotations") or {}
    default = any(annotations.get(each) == "true" for each in _DEFAULT_CLASS)
    return [
        f"{name(manifest)} (default)" if default else name(manifest),
        manifest.get("provisioner") or "",
        manifest.get("reclaimPolicy") or "Delete",
        manifest.get("volumeBindingMode") or "Immediate",
        bool(manifest.get("allowVolumeExpansion")),
        age(manifest, now),
    ]


def volume_attachment(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    return [
        name(manifest),
        what.get("attacher") or "",
        (what.get("source") or {}).get("persistentVolumeName") or "",
        what.get("nodeName") or "",
        bool(status(manifest).get("attached")),
        age(manifest, now),
    ]


def csi_driver(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    requests = what.get("tokenRequests")
    return [
        name(manifest),
        what.get("attachRequired") is not False,
        bool(what.get("podInfoOnMount")),
        bool(what.get("storageCapacity")),
        UNSET if requests is None else ",".join(each.get("audience") or "" for each in requests),
        bool(what.get("requiresRepublish")),
        ",".join(what.get("volumeLifecycleModes") or ()) or NONE,
        age(manifest, now),
    ]


def csi_node(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), len(spec(manifest).get("drivers") or ()), age(manifest, now)]


def csi_capacity(manifest: Part, now: datetime) -> list[Any]:
    capacity = manifest.get("capacity")
    return [name(manifest), manifest.get("storageClassName") or "", UNSET if capacity is None else amount(capacity)]


def priority_class(manifest: Part, now: datetime) -> list[Any]:
    policy = manifest.get("preemptionPolicy") or ""
    return [name(manifest), manifest.get("value") or 0, bool(manifest.get("globalDefault")), age(manifest, now), policy]


def runtime_class(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), manifest.get("handler") or "", age(manifest, now)]


def webhooks(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), len(manifest.get("webhooks") or ()), age(manifest, now)]


def admission_policy(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    kind = what.get("paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion') or ''}/{kind.get('kind') or ''}"
    return [name(manifest), len(what.get("validations") or ()), shown, age(manifest, now)]


def admission_policy_binding(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    ref = what.get("paramRef") or {}
    shown = f"{ref.get('namespace') or '*'}/{ref['name']}" if ref.get("name") else UNSET
    return [name(manifest), what.get("policyName") or "", shown, age(manifest, now)]


def api_service(manifest: Part, now: datetime) -> list[Any]:
    given, found = spec(manifest).get("service"), condition(manifest, "Available")
    service = "Local" if given is None else f"{given.get('namespace') or ''}/{given.get('name') or ''}"
    word = "Unknown"
    if found is not None:
        word = str(found.get("status") or "")
        if word != "True" and found.get("reason"):
            word = f"{word} ({found['reason']})"
    return [name(manifest), service, word, age(manifest, now)]


def flow_schema(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    dangling, method = condition(manifest, "Dangling"), what.get("distinguisherMethod")
    return [
        name(manifest),
        (what.get("priorityLevelConfiguration") or {}).get("name") or "",
        what.get("matchingPrecedence") or 0,
        NONE if method is None else method.get("type") or "",
        age(manifest, now),
        "?" if dangling is None else dangling.get("status") or "",
    ]


def priority_level(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    limited = what.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares: Any = NONE if limited is None else limited.get("nominalConcurrencyShares")
    fields = ("queues", "handSize", "queueLengthLimit")
    queues = [NONE if queuing is None else queuing.get(each) for each in fields]
    return [name(manifest), what.get("type") or "", shares, *queues, age(manifest, now)]
