"""Example request bodies, one per route that accepts a body.

In: a method and a path. Out: JSON data. Never: a value that would work as a credential.
"""

from __future__ import annotations

from typing import Any, Final

_SOURCE: Final = {"repoURL": "https://github.com/example/models.git", "path": "overlays/dev", "targetRevision": "main"}
_SPEC: Final = {
    "project": "default",
    "source": _SOURCE,
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
    "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
}
_APPLICATION: Final = {"metadata": {"name": "models"}, "spec": _SPEC}
_SET: Final = {
    "metadata": {"name": "models"},
    "spec": {
        "generators": [{"list": {"elements": [{"env": "dev"}]}}],
        "template": {"metadata": {"name": "models-{{env}}"}, "spec": _SPEC},
    },
}
_PROJECT: Final = {
    "project": {
        "metadata": {"name": "team"},
        "spec": {"sourceRepos": ["https://github.com/example/*"], "destinations": [{"server": "*", "namespace": "ml"}]},
    }
}
_REPOSITORY: Final = {"repo": "https://github.com/example/models.git", "username": "ci", "password": "…"}
_CREDENTIAL: Final = {"url": "https://github.com/example", "username": "ci", "password": "…"}
_CLUSTER: Final = {"server": "https://10.0.0.7:6443", "name": "edge", "config": {"bearerToken": "…"}}
_DEPLOYMENT: Final = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "ml", "resourceName": "web"}

EXAMPLES: Final[dict[str, Any]] = {
    "PUT /api/v1/account/password": {"name": "ann", "currentPassword": "…", "newPassword": "…"},
    "POST /api/v1/account/{name}/token": {"id": "ci", "expiresIn": 2592000},
    "POST /api/v1/applications/manifestsWithFiles": {"query": {"name": "models", "checksum": "0" * 64}},
    "POST /api/v1/applications/{name}/resource": '{"spec":{"replicas":2}}',
    "POST /api/v1/applications/{name}/resource/actions": "restart",
    "POST /api/v1/applications/{name}/resource/actions/v2": {**_DEPLOYMENT, "action": "restart"},
    "POST /api/v1/applications/{name}/sync": {
        "revision": "main",
        "prune": False,
        "dryRun": True,
        "strategy": {"hook": {"force": False}},
        "resources": [{"group": "apps", "kind": "Deployment", "namespace": "ml", "name": "web"}],
        "syncOptions": {"items": ["ApplyOutOfSyncOnly=true"]},
    },
    "POST /api/v1/applications/{name}/rollback": {"id": 3, "prune": False, "dryRun": False},
    "POST /api/v1/applications": _APPLICATION,
    "PUT /api/v1/applications/{name}": _APPLICATION,
    "PUT /api/v1/applications/{name}/spec": _SPEC,
    "PATCH /api/v1/applications/{name}": {
        "patch": '{"spec":{"source":{"targetRevision":"v2"}}}',
        "patchType": "merge",
    },
    "POST /api/v1/applicationsets": _SET,
    "POST /api/v1/certificates": {
        "items": [{"serverName": "git.example.com", "certType": "https", "certData": "LS0tLS1CRUdJTi…"}]
    },
    "POST /api/v1/gpgkeys": {"keyData": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n…"},
    "POST /api/v1/clusters": _CLUSTER,
    "PUT /api/v1/clusters/{id}": _CLUSTER,
    "POST /api/argosy/v1/applications/{ns}/{name}/hold": {"reason": "release under investigation"},
    "POST /api/argosy/v1/models/{ns}/{name}/try": {"question": {"instances": [[6.8, 2.8, 4.8, 1.4]]}},
    "POST /api/v1/projects": _PROJECT,
    "PUT /api/v1/projects/{name}": _PROJECT,
    "POST /api/v1/repositories": _REPOSITORY,
    "PUT /api/v1/repositories/{repo}": _REPOSITORY,
    "POST /api/v1/write-repositories": _REPOSITORY,
    "PUT /api/v1/write-repositories/{repo}": _REPOSITORY,
    "POST /api/v1/repocreds": _CREDENTIAL,
    "PUT /api/v1/repocreds/{repo}": _CREDENTIAL,
    "POST /api/v1/write-repocreds": _CREDENTIAL,
    "PUT /api/v1/write-repocreds/{repo}": _CREDENTIAL,
    "POST /api/v1/repositories/{repo}/appdetails": {"source": _SOURCE, "appName": "models", "appProject": "default"},
    "POST /api/v1/projects/{project}/roles/{role}/token": {"id": "ci", "expiresIn": 2592000},
    "POST /api/v1/session": {"username": "ann", "password": "…"},
}


def find_example(method: str, path: str) -> Any:
    """Return an example; None if the route accepts no body, or any."""
    return EXAMPLES.get(f"{method} {path}")
