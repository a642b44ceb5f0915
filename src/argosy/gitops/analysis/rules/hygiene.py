"""Rules about secrets in Git and excessive permissions.

In: a repository. Out: violations. Never: a secret's value in a message.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.fixes import value_at
from argosy.gitops.analysis.repository import Item, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.secret_detection import IN_URL, TOKENS, is_secret
from argosy.gitops.analysis.violation import Place, Severity, Sight

_PLACEHOLDER: Final = re.compile(
    r"(?i)^\W*(?:<.*>|\$\{?.*|\{\{.*\}\}|change[-_ ]?me.*|replace.*|your[-_ ].*|todo.*|x{3,}|\*+|example.*|dummy"
    r"|placeholder.*|none|null|true|false)\W*$"
)
_JWT: Final = re.compile(r"\beyJ[\w-]{8,}\.(eyJ[\w-]{8,})\.[\w-]{8,}")
_IN_TEXT: Final = re.compile(r"(?m)^[\s-]*(?:client-key-data|token|password): *([^\s#]+)")
_KUBECONFIG: Final = ("client-key-data", "token", "password")
_AUTH_PROVIDER: Final = tuple(
    ("auth-provider", "config", name) for name in ("access-token", "id-token", "refresh-token", "client-secret")
)
_ARGOCD: Final = re.compile(r"argocd-application-controller")


def _everything(repository: Repository) -> Iterator[Item]:
    yield from repository.loose
    yield from (item for _, item in repository.objects())


def _secrets(repository: Repository) -> Iterator[Sight]:
    for item in _everything(repository):
        if item.kind != ("", "Secret") or "sops" in item.manifest:
            continue  # encrypted by SOPS
        for part in ("stringData", "data"):
            for name, value in item.fields(part).items():
                text = _decoded(value) if part == "data" else str(value or "")
                if text and not _PLACEHOLDER.match(text) and is_secret(str(name), text):
                    message = f"{item.name}: {part}.{name} has a value that anyone who can read the repository can read"
                    fix = "use a SealedSecret or an ExternalSecret, and change the value: the Git history keeps it"
                    yield Sight(item.at(part, name), message, fix, item.name, f"{part}.{name}")


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(str(value or ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""  # not a Secret that a server accepts


def _addresses(repository: Repository) -> Iterator[Sight]:
    for written in repository.applications:
        for number, source in enumerate(written.app.sources):
            found = IN_URL.match(source.repo_url)
            if found and not _PLACEHOLDER.match(found[1]):
                path = ("spec", "sources", number) if written.app.has_many_sources else ("spec", "source")
                message = f"{written.name}: the URL of its repository contains a password or token"
                fix = "move it to a Secret labelled argocd.argoproj.io/secret-type: repository, and change it"
                yield Sight(written.at(*path, "repoURL"), message, fix, written.item.name)


def _both(repository: Repository) -> Iterator[Sight]:
    yield from _secrets(repository)
    yield from _addresses(repository)


def _credentials(repository: Repository) -> Iterator[Sight]:
    for item in _everything(repository):
        if item.kind == ("", "Config") and item.value("users") is not None:
            yield from _kubeconfig(item, repository)
        elif item.kind == ("", "ConfigMap"):
            for name, value in item.fields("data").items():
                if isinstance(value, str) and _holds_credential(value):
                    message = f"{item.name}: data.{name} contains a private key or token, but is not confidential"
                    fix = "remove it from Git, and revoke it: the Git history keeps it"
                    yield Sight(item.at("data", name), message, fix, item.name, f"data.{name}")


def _holds_credential(text: str) -> bool:
    """True if the text has a key or token by its format, a service account token by its issuer, or a kubeconfig."""
    if TOKENS.search(text) or any(_is_of_account(found[1]) for found in _JWT.finditer(text)):
        return True
    given = _IN_TEXT.findall(text) if "kind: Config" in text and "users:" in text else []
    return any(not _PLACEHOLDER.match(value) for value in given)


def _is_of_account(claims: str) -> bool:
    """k8s: `iss` and `sub` of a service account token name the service account."""
    return "serviceaccount" in base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode("utf-8", "replace")


def _kubeconfig(item: Item, repository: Repository) -> Iterator[Sight]:
    for number, user in enumerate(item.all("users")):
        held = user.get("user") if isinstance(user, dict) else None
        for name in _KUBECONFIG if isinstance(held, dict) else ():
            value = str((held or {}).get(name) or "")
            if value and not _PLACEHOLDER.match(value):
                yield _kubeconfig_sight(repository, item.at("users", number, "user", name), name)


def _kubeconfig_files(repository: Repository) -> Iterator[Sight]:
    for item in repository.kubeconfigs:
        if "sops" in item.manifest:
            continue  # encrypted by SOPS
        for number, user in enumerate(item.all("users")):
            for path, value in _credentials_of_user(user):
                if value and not _PLACEHOLDER.match(value) and not value.startswith("ENC["):
                    name = ".".join(map(str, path))
                    yield _kubeconfig_sight(repository, item.at("users", number, "user", *path), name)


def _kubeconfig_sight(repository: Repository, place: Place, name: str) -> Sight:
    is_tracked = repository.is_tracked(place.file)
    source = "the repository" if is_tracked else "it"
    message = f"this file is a kubeconfig with {name}: anyone who can read {source} can use the cluster"
    fix = "move the file elsewhere, and revoke the credential if others could read it"
    if is_tracked:
        fix = "remove the file from Git and revoke the credential: the history of Git keeps it"
    return Sight(place, message, fix, "kubeconfig", name)


def _credentials_of_user(user: Any) -> Iterator[tuple[tuple[Step, ...], str]]:
    """k8s: credentials are in the user itself, in the cache of an auth provider, or in the environment of an exec
    plugin.
    """
    held = user.get("user") if isinstance(user, dict) else None
    if not isinstance(held, dict):
        return
    for path in (*((name,) for name in _KUBECONFIG), *_AUTH_PROVIDER):
        value = value_at(held, path)
        if isinstance(value, str):
            yield path, value
    env = value_at(held, ("exec", "env"))
    for number, each in enumerate(env if isinstance(env, list) else ()):
        value = each.get("value") if isinstance(each, dict) else None
        if isinstance(value, str) and is_secret(str(each.get("name")), value):
            yield ("exec", "env", number, "value"), value


def _admin(repository: Repository) -> Iterator[Sight]:
    for item in _everything(repository):
        if item.kind != ("rbac.authorization.k8s.io", "ClusterRoleBinding"):
            continue
        if item.text("roleRef", "name") != "cluster-admin":
            continue
        for number, subject in enumerate(item.all("subjects")):
            name = str(subject.get("name", "")) if isinstance(subject, dict) else ""
            if _ARGOCD.search(name):
                message = f"{item.name} grants cluster-admin to {name}"
                fix = "bind a Role in each namespace it deploys to; argosy setup writes them"
                yield Sight(item.at("subjects", number, "name"), message, fix, item.name)


RULES: Final = (
    Rule(
        "AGY601",
        Severity.WARNING,
        "A secret is in Git",
        "Anyone who can read the repository, or any copy of it, has the secret; removing it later does not help.",
        "A Secret has a value that is not empty, a placeholder or encrypted, and its name is that of a password,"
        " token or key, or its format is that of a provider; or a repository URL contains a password.",
        "Use a SealedSecret or an ExternalSecret, and change the value.",
        _both,
    ),
    Rule(
        "AGY602",
        Severity.WARNING,
        "Argo CD is cluster-admin",
        "Anyone who may merge to the repository may do anything in the cluster.",
        "A ClusterRoleBinding grants cluster-admin to the ServiceAccount of Argo CD's application controller.",
        "Bind a Role in each namespace it deploys to.",
        _admin,
    ),
    Rule(
        "AGY603",
        Severity.ERROR,
        "A credential of a cluster or service is in Git",
        "Anyone who can read the repository can act as its owner.",
        "A kubeconfig contains a key, token or password; or a ConfigMap contains a kubeconfig with one of them, a"
        " ServiceAccount token, or a text in the format of a private key or of a provider's token.",
        "Remove it, and revoke the credential.",
        _credentials,
    ),
    Rule(
        "AGY604",
        Severity.ERROR,
        "A kubeconfig is in Git under any name",
        "Anyone who can read the repository, or any copy of it, can use the cluster.",
        "Git tracks the file (outside of Git: the file exists), kubectl would read it as a kubeconfig, and a user in"
        " it has a key, token or password that is neither a placeholder nor encrypted. A kubeconfig in a YAML or JSON"
        " file that says `kind: Config` is AGY603.",
        "Remove the file from Git, add its name to .gitignore, and revoke the credential.",
        _kubeconfig_files,
    ),
)
