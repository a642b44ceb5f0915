"""Rules about secrets in Git and excessive permissions.

In: a repository. Out: violations. Never: a secret's value in a message.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.fix_edit_builders import get_value
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.secret_name_and_token_patterns import TOKEN_FORMATS, URL_PASSWORD, is_secret

_PLACEHOLDER: Final = re.compile(
    r"(?i)^\W*(?:<.*>|\$\{?.*|\{\{.*\}\}|change[-_ ]?me.*|replace.*|your[-_ ].*|todo.*|x{3,}|\*+|example.*|dummy"
    r"|placeholder.*|none|null|true|false)\W*$"
)
_JSON_WEB_TOKEN: Final = re.compile(r"\beyJ[\w-]{8,}\.(eyJ[\w-]{8,})\.[\w-]{8,}")
_KUBECONFIG_CREDENTIAL: Final = re.compile(r"(?m)^[\s-]*(?:client-key-data|token|password): *([^\s#]+)")
_CREDENTIAL_FIELDS: Final = ("client-key-data", "token", "password")
_AUTH_PROVIDER_PATHS: Final = tuple(
    ("auth-provider", "config", name) for name in ("access-token", "id-token", "refresh-token", "client-secret")
)
_ARGOCD_CONTROLLER_NAME: Final = re.compile(r"argocd-application-controller")


def _list_manifests(repository: RepositoryView) -> Iterator[ManifestWithLocations]:
    yield from repository.unrendered_manifests
    yield from (item for _, item in repository.list_objects())


def _find_secrets(repository: RepositoryView) -> Iterator[Violation]:
    for item in _list_manifests(repository):
        if item.group_kind != ("", "Secret") or "sops" in item.manifest:
            continue  # encrypted by SOPS
        for part in ("stringData", "data"):
            for name, value in item.get_map(part).items():
                text = _decode_base64(value) if part == "data" else str(value or "")
                if text and not _PLACEHOLDER.match(text) and is_secret(str(name), text):
                    message = f"{item.name}: {part}.{name} has a value that anyone who can read the repository can read"
                    fix = "use a SealedSecret or an ExternalSecret, and change the value: the Git history keeps it"
                    yield Violation(item.find_location(part, name), message, fix, item.name, f"{part}.{name}")


def _decode_base64(value: Any) -> str:
    try:
        return base64.b64decode(str(value or ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""  # not a Secret that a server accepts


def _find_urls_with_password(repository: RepositoryView) -> Iterator[Violation]:
    for declaration in repository.applications:
        for index, source in enumerate(declaration.app.sources):
            match = URL_PASSWORD.match(source.repo_url)
            if match and not _PLACEHOLDER.match(match[1]):
                path = ("spec", "sources", index) if declaration.app.has_many_sources else ("spec", "source")
                message = f"{declaration.name}: the URL of its repository contains a password or token"
                fix = "move it to a Secret labelled argocd.argoproj.io/secret-type: repository, and change it"
                yield Violation(declaration.find_location(*path, "repoURL"), message, fix, declaration.item.name)


def _find_secrets_and_urls(repository: RepositoryView) -> Iterator[Violation]:
    yield from _find_secrets(repository)
    yield from _find_urls_with_password(repository)


def _find_credentials(repository: RepositoryView) -> Iterator[Violation]:
    for item in _list_manifests(repository):
        if item.group_kind == ("", "Config") and item.get_value("users") is not None:
            yield from _find_kubeconfig_credentials(item, repository)
        elif item.group_kind == ("", "ConfigMap"):
            for name, value in item.get_map("data").items():
                if isinstance(value, str) and _has_credential(value):
                    message = f"{item.name}: data.{name} contains a private key or token, but is not confidential"
                    fix = "remove it from Git, and revoke it: the Git history keeps it"
                    yield Violation(item.find_location("data", name), message, fix, item.name, f"data.{name}")


def _has_credential(text: str) -> bool:
    """True if the text has a key or token by its format, a service account token by its issuer, or a kubeconfig."""
    if TOKEN_FORMATS.search(text) or any(
        _is_service_account_token(match[1]) for match in _JSON_WEB_TOKEN.finditer(text)
    ):
        return True
    values = _KUBECONFIG_CREDENTIAL.findall(text) if "kind: Config" in text and "users:" in text else []
    return any(not _PLACEHOLDER.match(value) for value in values)


def _is_service_account_token(claims: str) -> bool:
    """k8s: `iss` and `sub` of a service account token name the service account."""
    return "serviceaccount" in base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode("utf-8", "replace")


def _find_kubeconfig_credentials(item: ManifestWithLocations, repository: RepositoryView) -> Iterator[Violation]:
    for index, user in enumerate(item.get_list("users")):
        user_fields = user.get("user") if isinstance(user, dict) else None
        for name in _CREDENTIAL_FIELDS if isinstance(user_fields, dict) else ():
            value = str((user_fields or {}).get(name) or "")
            if value and not _PLACEHOLDER.match(value):
                yield _build_kubeconfig_violation(repository, item.find_location("users", index, "user", name), name)


def _find_kubeconfig_files(repository: RepositoryView) -> Iterator[Violation]:
    for item in repository.kubeconfigs:
        if "sops" in item.manifest:
            continue  # encrypted by SOPS
        for index, user in enumerate(item.get_list("users")):
            for path, value in _list_user_credentials(user):
                if value and not _PLACEHOLDER.match(value) and not value.startswith("ENC["):
                    name = ".".join(map(str, path))
                    yield _build_kubeconfig_violation(
                        repository, item.find_location("users", index, "user", *path), name
                    )


def _build_kubeconfig_violation(repository: RepositoryView, location: FileLocation, name: str) -> Violation:
    is_tracked = repository.is_tracked(location.file)
    source = "the repository" if is_tracked else "it"
    message = f"this file is a kubeconfig with {name}: anyone who can read {source} can use the cluster"
    fix = "move the file elsewhere, and revoke the credential if others could read it"
    if is_tracked:
        fix = "remove the file from Git and revoke the credential: the history of Git keeps it"
    return Violation(location, message, fix, "kubeconfig", name)


def _list_user_credentials(user: Any) -> Iterator[tuple[tuple[PathStep, ...], str]]:
    """k8s: credentials are in the user itself, in the cache of an auth provider, or in the environment of an exec
    plugin.
    """
    user_fields = user.get("user") if isinstance(user, dict) else None
    if not isinstance(user_fields, dict):
        return
    for path in (*((name,) for name in _CREDENTIAL_FIELDS), *_AUTH_PROVIDER_PATHS):
        value = get_value(user_fields, path)
        if isinstance(value, str):
            yield path, value
    env = get_value(user_fields, ("exec", "env"))
    for index, variable in enumerate(env if isinstance(env, list) else ()):
        value = variable.get("value") if isinstance(variable, dict) else None
        if isinstance(value, str) and is_secret(str(variable.get("name")), value):
            yield ("exec", "env", index, "value"), value


def _find_argocd_cluster_admins(repository: RepositoryView) -> Iterator[Violation]:
    for item in _list_manifests(repository):
        if item.group_kind != ("rbac.authorization.k8s.io", "ClusterRoleBinding"):
            continue
        if item.get_string("roleRef", "name") != "cluster-admin":
            continue
        for index, subject in enumerate(item.get_list("subjects")):
            name = str(subject.get("name", "")) if isinstance(subject, dict) else ""
            if _ARGOCD_CONTROLLER_NAME.search(name):
                message = f"{item.name} grants cluster-admin to {name}"
                fix = "bind a Role in each namespace it deploys to; argosy setup writes them"
                yield Violation(item.find_location("subjects", index, "name"), message, fix, item.name)


RULES: Final = (
    AnalysisRule(
        "AGY601",
        Severity.WARNING,
        "A secret is in Git",
        "Anyone who can read the repository, or any copy of it, has the secret; removing it later does not help.",
        "A Secret has a value that is not empty, a placeholder or encrypted, and its name is that of a password,"
        " token or key, or its format is that of a provider; or a repository URL contains a password.",
        "Use a SealedSecret or an ExternalSecret, and change the value.",
        _find_secrets_and_urls,
    ),
    AnalysisRule(
        "AGY602",
        Severity.WARNING,
        "Argo CD is cluster-admin",
        "Anyone who may merge to the repository may do anything in the cluster.",
        "A ClusterRoleBinding grants cluster-admin to the ServiceAccount of Argo CD's application controller.",
        "Bind a Role in each namespace it deploys to.",
        _find_argocd_cluster_admins,
    ),
    AnalysisRule(
        "AGY603",
        Severity.ERROR,
        "A credential of a cluster or service is in Git",
        "Anyone who can read the repository can act as its owner.",
        "A kubeconfig contains a key, token or password; or a ConfigMap contains a kubeconfig with one of them, a"
        " ServiceAccount token, or a text in the format of a private key or of a provider's token.",
        "Remove it, and revoke the credential.",
        _find_credentials,
    ),
    AnalysisRule(
        "AGY604",
        Severity.ERROR,
        "A kubeconfig is in Git under any name",
        "Anyone who can read the repository, or any copy of it, can use the cluster.",
        "Git tracks the file (outside of Git: the file exists), kubectl would read it as a kubeconfig, and a user in"
        " it has a key, token or password that is neither a placeholder nor encrypted. A kubeconfig in a YAML or JSON"
        " file that says `kind: Config` is AGY603.",
        "Remove the file from Git, add its name to .gitignore, and revoke the credential.",
        _find_kubeconfig_files,
    ),
)
