"""Rules about what does not belong into Git, or has too much power.

In: a repository. Out: sights. Never: a secret's value in a message.
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
            continue  # what SOPS wrote is encrypted
        for part in ("stringData", "data"):
            for name, value in item.fields(part).items():
                text = _decoded(value) if part == "data" else str(value or "")
                if text and not _PLACEHOLDER.match(text) and is_secret(str(name), text):
                    message = f"{item.name}: {part}.{name} has a value, and whoever reads the repository has it too"
                    fix = "keep it in a SealedSecret or an ExternalSecret, and change the value: Git remembers it"
                    yield Sight(item.at(part, name), message, fix, item.name, f"{part}.{name}")


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(str(value or ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""  # no Secret that a server takes


def _addresses(repository: Repository) -> Iterator[Sight]:
    for written in repository.applications:
        for number, source in enumerate(written.app.sources):
            found = IN_URL.match(source.repo_url)
            if found and not _PLACEHOLDER.match(found[1]):
                path = ("spec", "sources", number) if written.app.has_many_sources else ("spec", "source")
                message = f"{written.name}: the address of its repository holds a password or token"
                fix = "put it into a Secret labelled argocd.argoproj.io/secret-type: repository, and change it"
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
                    message = f"{item.name}: data.{name} holds a private key or token, and a ConfigMap hides nothing"
                    fix = "keep it out of Git, and change it: Git remembers it"
                    yield Sight(item.at("data", name), message, fix, item.name, f"data.{name}")


def _holds_credential(text: str) -> bool:
    """A key or token by its mark; a token of a service account by its issuer; a kubeconfig by what is in it."""
    if TOKENS.search(text) or any(_is_of_account(found[1]) for found in _JWT.finditer(text)):
        return True
    given = _IN_TEXT.findall(text) if "kind: Config" in text and "users:" in text else []
    return any(not _PLACEHOLDER.match(value) for value in given)


def _is_of_account(claims: str) -> bool:
    """k8s: `iss` and `sub` of such a token name the service account."""
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
            continue  # what SOPS wrote is encrypted
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
    """k8s: a user has its credentials itself, in the cache of an auth provider, or in the environment of a program."""
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
                message = f"{item.name} makes {name} an administrator of the whole cluster"
                fix = "bind a Role in each namespace that it delivers to; argosy setup writes them"
                yield Sight(item.at("subjects", number, "name"), message, fix, item.name)


RULES: Final = (
    Rule(
        "AGY601",
        Severity.WARNING,
        "A secret is in Git",
        "Whoever can read the repository, or any copy of it, has the secret; to take it out later changes nothing.",
        "A Secret has a value that is neither empty nor a placeholder nor encrypted, under the name of a password,"
        " token or key, or with a provider's mark of one; or a repository's address holds a password.",
        "Keep it in a SealedSecret or an ExternalSecret, and change the value.",
        _both,
    ),
    Rule(
        "AGY602",
        Severity.WARNING,
        "Argo CD is administrator of the whole cluster",
        "Whoever may merge to the repository may do anything in the cluster.",
        "A ClusterRoleBinding gives cluster-admin to the service account of Argo CD's application controller.",
        "Bind a Role in each namespace that it delivers to.",
        _admin,
    ),
    Rule(
        "AGY603",
        Severity.ERROR,
        "A credential of a cluster or service is in Git",
        "Whoever can read the repository can act as its owner.",
        "A kubeconfig holds a key, token or password; or a ConfigMap holds a kubeconfig with one of them, a token of a"
        " service account, or a text with the mark of a private key or of a provider's token.",
        "Take it out, and end the credential.",
        _credentials,
    ),
    Rule(
        "AGY604",
        Severity.ERROR,
        "A kubeconfig is in Git, whatever its name",
        "Anyone who can read the repository, or any copy of it, can use the cluster.",
        "Git tracks the file (outside of Git: the file is there), kubectl would read it as a kubeconfig, and a user in"
        " it has a key, token or password that is neither a placeholder nor encrypted. A kubeconfig in a YAML or JSON"
        " file that says `kind: Config` is AGY603.",
        "Remove the file from Git, add its name to .gitignore, and revoke the credential.",
        _kubeconfig_files,
    ),
)
