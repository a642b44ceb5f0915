"""An installation with HTML and script injections in every field that a page shows.

In: a folder. Out: cluster objects and a Git commit; the payload of each field contains the name of the field. Never:
a payload that does more than set a marker or request /ran.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.engine import Repository
from support.tenants import CONTROL, declared

WHEN = "2026-01-01T00:00:00Z"
APP = "app-x"
SCRIPT = "javascript:window.ran=1"
KIND = {"apiVersion": "argoproj.io/v1alpha1"}
PLANTED: set[str] = set()  # names of all fields with a payload


def hostile(field: str) -> str:
    """Return a payload for this field; if any part of it runs, it sets `window.ran` or requests /ran."""
    PLANTED.add(field)
    return f"{field}~'\"></title></textarea><svg onload=window.ran=1><img src=/ran onerror=window.ran=2>{{{{7*7}}}}"


def commit(folder: Path) -> Repository:
    repository = Repository(folder)
    metadata = {"name": "conf", "annotations": {"a": hostile("desired-annotation")}}
    metadata["labels"] = {"l": hostile("desired-label")}  # k8s: a cluster validates labels, names and accounts
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    repository.push({"app/cm.yaml": {**manifest, "data": {"k": hostile("desired-value")}}}, message=hostile("commit"))
    return repository


def operation(head: str) -> dict[str, Any]:
    row = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "team-a", "name": "conf"}
    result = {**row, "status": "SyncFailed", "message": hostile("result-message"), "hookPhase": "Failed"}
    hook = {**row, "kind": "Job", "group": "batch", "name": "hook", "hookType": "PreSync", "syncPhase": "PreSync"}
    hook |= {"hookPhase": "Failed", "message": hostile("hook-message")}
    request = {
        "initiatedBy": {"username": hostile("operation-by")},
        "sync": {"revision": hostile("operation-revision")},
    }
    request["info"] = [{"name": hostile("operation-info"), "value": hostile("operation-info-value")}]
    return {
        "phase": "Failed", "message": hostile("operation-message"), "startedAt": WHEN, "finishedAt": WHEN,
        "operation": request, "syncResult": {"revision": head, "resources": [{**result, "syncPhase": "Sync"}, hook]},
    }  # fmt: skip


def status(head: str) -> dict[str, Any]:
    health = {"status": "Degraded", "message": hostile("resource-health")}
    row = {"version": "v1", "kind": "ConfigMap", "namespace": "team-a", "name": "conf", "status": "OutOfSync"}
    history_source = {"repoURL": f"https://x/{hostile('history-repository')}", "path": hostile("history-path")}
    history_source["targetRevision"] = hostile("history-target")
    return {
        "resources": [{**row, "health": health}],
        "sync": {"status": "OutOfSync", "revision": head},
        "health": {"status": "Degraded", "message": hostile("health-message")},
        "summary": {"images": [hostile("image")], "externalURLs": [SCRIPT, f"https://ok/{hostile('address')}"]},
        "conditions": [{"type": "SyncError", "message": hostile("condition"), "lastTransitionTime": WHEN}],
        "history": [
            {"id": 1, "revision": head, "deployedAt": WHEN, "initiatedBy": {"username": hostile("history-by")}},
            {"id": 2, "revision": hostile("history-revision"), "deployedAt": WHEN, "source": history_source},
        ],
        "operationState": operation(head),
    }


def application(repository: Repository) -> dict[str, Any]:
    lead = "link.argocd.argoproj.io"
    links = {f"{lead}/external-link": SCRIPT, f"{lead}/b": f"{hostile('link')}|{SCRIPT}"}
    hold = {"by": hostile("hold-by"), "reason": hostile("hold-reason"), "at": WHEN}
    annotations = {**links, "argosy.dev/hold": json.dumps(hold)}
    annotations["notifications.argoproj.io/subscribe.on-sync-failed.slack"] = hostile("subscription")
    source = {"repoURL": repository.url, "path": "app", "targetRevision": "main"}
    options = {"syncOptions": [hostile("sync-option")]}
    ignored = {"kind": "ConfigMap", "jsonPointers": [hostile("ignored-field")]}
    ignored |= {"managedFieldsManagers": [hostile("ignored-manager")]}
    return {
        **KIND, "kind": "Application",
        "metadata": {"name": APP, "namespace": CONTROL, "annotations": annotations},
        "spec": {
            "project": "team-a", "info": [{"name": hostile("info"), "value": SCRIPT}], "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "team-a"}, "syncPolicy": options,
            "ignoreDifferences": [ignored],
        },
        "status": status(repository.head),
    }  # fmt: skip


def helm_application(repository: Repository) -> dict[str, Any]:
    base = application(repository)
    parameters = [{"name": hostile("parameter"), "value": hostile("parameter-value")}]
    values = f"a: {json.dumps(hostile('values'))}\n"
    helm = {"parameters": parameters, "values": values, "releaseName": hostile("release")}
    base["metadata"] = {"name": "app-h", "namespace": CONTROL}
    base["spec"]["source"] = {**base["spec"]["source"], "targetRevision": hostile("target"), "helm": helm}
    base["status"] |= {"sync": {"status": hostile("sync-word"), "revision": hostile("sync-revision")}}
    base["status"] |= {"health": {"status": hostile("health-word")}, "operationState": {}}
    return {**base, "status": {name: value for name, value in base["status"].items() if value}}


def live() -> list[dict[str, Any]]:
    tracked = {"argocd.argoproj.io/tracking-id": f"{APP}:/ConfigMap:team-a/conf", "a": hostile("live-annotation")}
    metadata = {"name": "conf", "namespace": "team-a", "annotations": tracked, "uid": "0-1"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": hostile("live-value")}}
    about = {"kind": "ConfigMap", "namespace": "team-a", "name": "conf"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1", "namespace": "team-a"}, "type": "Warning"}
    event |= {"involvedObject": about, "reason": hostile("event-reason"), "message": hostile("event-message")}
    event |= {"source": {"component": hostile("event-source")}, "lastTimestamp": WHEN}
    control_event = {**event, "metadata": {"name": "e2", "namespace": CONTROL}}
    control_event["involvedObject"] = {**KIND, "kind": "Application", "namespace": CONTROL, "name": APP}
    return [config_map, event, control_event]


def project() -> dict[str, Any]:
    destinations = [{name: hostile(f"destination-{name}")} for name in ("server", "namespace", "name")]
    role = {"name": "r", "description": hostile("role"), "groups": [hostile("role-group")]}
    role["policies"] = [hostile("role-policy")]
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": [hostile("window")]}
    broken = {"kind": "allow", "schedule": hostile("window-schedule"), "duration": hostile("window-duration")}
    broken |= {"timeZone": hostile("window-zone"), "namespaces": [hostile("window-namespace")]}
    spec = {
        "description": hostile("project"),
        "sourceRepos": [hostile("source-repository")],
        "destinations": destinations,
    }
    kinds = [{"group": hostile("allowed-group"), "kind": hostile("allowed-kind")}]
    spec |= {"roles": [role], "syncWindows": [window, broken], "clusterResourceWhitelist": kinds}
    return {**KIND, "kind": "AppProject", "metadata": {"name": "team-x", "namespace": CONTROL}, "spec": spec}


def objects(folder: Path) -> list[dict[str, Any]]:
    repository = commit(folder / "repository")
    roots = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": CONTROL}}
    url = f"https://h.example.com/{hostile('repository-url')}"
    return [
        {**roots, "data": {"source.local.roots": str(folder), "source.protocols": "https, http"}},
        *live(), application(repository), helm_application(repository), project(),
        declared("repository", "repo-x", url=url, name=hostile("repository-name"), type="git"),
        declared("cluster", "cl-x", server="https://c.example.com", name=hostile("cluster-name"), config="{}"),
    ]  # fmt: skip


def image(field: str) -> str:
    """Return a shorter payload, for values inside YAML."""
    PLANTED.add(field)
    return f"{field}~<img src=/ran onerror=window.ran=2>"


SETTINGS = {
    "application.links": f"- url: \"{SCRIPT}\"\n  title: '{image('link-title')}'\n",
    "oidc.config": f"issuer: https://idp.example.com\nclientID: x\nname: '{image('provider')}'\n",
    "resource.customizations.health.x_Y": f"-- {image('health-script')}",
}
EVERYBODY = {"policy.default": "role:admin"}
WORDS = (
    "q", "search", "sort", "label", "project", "health", "sync", "next", "said", "error", "revision", "view", "group",
    "at", "kind", "app", "only", "pod", "container", "res", "tab", "match", "severity", "namespace",
    "name", "id", "with", "side", "show", "format", "state", "deep", "held",
)  # fmt: skip
