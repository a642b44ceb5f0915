"""Table rows of core kinds: services, nodes, namespaces, volumes, events, ConfigMaps and Secrets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Part,
    access_modes,
    addresses,
    age,
    amount,
    condition,
    name,
    pairs,
    since,
    some,
    spec,
    status,
)

_ROLE = "node-role.kubernetes.io/"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def service(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    ips = what.get("clusterIPs") or ([what["clusterIP"]] if what.get("clusterIP") else [NONE])
    ports = ",".join(_port(each) for each in what.get("ports") or ())
    return [
        name(manifest),
        what.get("type") or "",
        ips[0],
        _external(manifest),
        ports or NONE,
        age(manifest, now),
        pairs(what.get("selector")),
    ]


def _port(port: Part) -> str:
    number = f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else f"{port.get('port')}"
    return f"{number}/{port.get('protocol') or ''}"


def _external(manifest: Part) -> str:
    what = spec(manifest)
    kind, external = what.get("type"), what.get("externalIPs") or []
    if kind == "ExternalName":
        return str(what.get("externalName") or "")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        given = addresses(status(manifest).get("loadBalancer"))
        return ",".join([*given.split(","), *external] if given else external) or "<pending>"
    return UNKNOWN


def endpoints(manifest: Part, now: datetime) -> list[Any]:
    found, total = [], 0
    for subset in manifest.get("subsets") or ():
        ips = [each.get("ip") or "" for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        total += len(ips) * (len(ports) if ports else 1)
        if not ports:
            found.extend(ips)
        for port in ports or ():
            found.extend(f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}" for ip in ips)
    shown = some(found, total) if manifest.get("subsets") else NONE
    return [name(manifest), shown, age(manifest, now)]


def node(manifest: Part, now: datetime) -> list[Any]:
    how = status(manifest)
    ready = condition(manifest, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec(manifest).get("unschedulable"):
        words.append("SchedulingDisabled")
    labels = manifest["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get("kubernetes.io/role") or "")
    info = how.get("nodeInfo") or {}
    return [
        name(manifest),
        ",".join(words),
        ",".join(sorted(roles - {""})) or NONE,
        age(manifest, now),
        info.get("kubeletVersion") or "",
        _address(how, "InternalIP"),
        _address(how, "ExternalIP"),
        *(info.get(each) or UNKNOWN for each in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _address(how: Part, kind: str) -> str:
    found = (each.get("address") for each in how.get("addresses") or () if each.get("type") == kind)
    return next(found, None) or NONE


def event(manifest: Part, now: datetime) -> list[Any]:
    """Build the row of an Event of either API group; only the field names differ."""
    about = manifest.get("involvedObject") or manifest.get("regarding") or {}
    source = manifest.get("source") or manifest.get("deprecatedSource") or {}
    first = manifest.get("firstTimestamp") or manifest.get("deprecatedFirstTimestamp") or manifest.get("eventTime")
    last = manifest.get("lastTimestamp") or manifest.get("deprecatedLastTimestamp") or first
    series = manifest.get("series")
    count = manifest.get("count") or manifest.get("deprecatedCount") or 1
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count") or 0
    kind = str(about.get("kind") or "").lower()
    return [
        since(last, now),
        manifest.get("type") or "",
        manifest.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        _source(manifest, source),
        str(manifest.get("message") or manifest.get("note") or "").strip(),
        since(first, now),
        count,
        name(manifest),
    ]


def _source(manifest: Part, source: Part) -> str:
    reporter = manifest.get("reportingComponent") or manifest.get("reportingController") or ""
    component = source.get("component") or reporter
    host = source.get("host") or manifest.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def namespace(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), status(manifest).get("phase") or "", age(manifest, now)]


def secret(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), manifest.get("type") or "", len(manifest.get("data") or ()), age(manifest, now)]


def config_map(manifest: Part, now: datetime) -> list[Any]:
    count = len(manifest.get("data") or ()) + len(manifest.get("binaryData") or ())
    return [name(manifest), count, age(manifest, now)]


def service_account(manifest: Part, now: datetime) -> list[Any]:
    return [name(manifest), len(manifest.get("secrets") or ()), age(manifest, now)]


def _phase(manifest: Part) -> str:
    if manifest["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(status(manifest).get("phase") or "")


def _class(manifest: Part) -> str:
    annotations = manifest["metadata"].get("annotations") or {}
    return str(annotations.get(_BETA_CLASS) or spec(manifest).get("storageClassName") or "")


def _or_unset(what: Part, field: str) -> str:
    return UNSET if what.get(field) is None else str(what[field])


def volume(manifest: Part, now: datetime) -> list[Any]:
    what, claim = spec(manifest), spec(manifest).get("claimRef")
    return [
        name(manifest),
        amount((what.get("capacity") or {}).get("storage")),
        access_modes(what.get("accessModes")),
        what.get("persistentVolumeReclaimPolicy") or "",
        _phase(manifest),
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        _class(manifest),
        _or_unset(what, "volumeAttributesClassName"),
        status(manifest).get("reason") or "",
        age(manifest, now),
        _or_unset(what, "volumeMode"),
    ]


def claim(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    bound = bool(what.get("volumeName"))
    return [
        name(manifest),
        _phase(manifest),
        what.get("volumeName") or "",
        amount((how.get("capacity") or {}).get("storage")) if bound else "",
        access_modes(how.get("accessModes")) if bound else "",
        _class(manifest),
        _or_unset(what, "volumeAttributesClassName"),
        age(manifest, now),
        _or_unset(what, "volumeMode"),
    ]


def resource_quota(manifest: Part, now: datetime) -> list[Any]:
    how = status(manifest)
    hard, used = how.get("hard") or {}, how.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for each in sorted(hard):
        text = f"{each}: {amount(used.get(each))}/{amount(hard[each])}"
        (limits if each.startswith("limits.") else requests).append(text)
    return [name(manifest), age(manifest, now), ", ".join(requests), ", ".join(limits)]


def component_status(manifest: Part, now: datetime) -> list[Any]:
    found = next((each for each in manifest.get("conditions") or () if each.get("type") == "Healthy"), None)
    if found is None:
        return [name(manifest), "Unknown", "", ""]
    word = "Healthy" if found.get("status") == "True" else "Unhealthy"
    return [name(manifest), word, found.get("message") or "", found.get("error") or ""]
