"""Reads argosy.yaml with its secrets, or a folder of Applications.

In: paths and environment variables. Out: a setup request, or manifests. Never: calls a cluster; reads a file of
unlimited size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.features.health_checks.argocd_install.merge import USUAL_KINDS, Check, wanted_checks
from argosy.features.health_checks.kinds import find_kind, known_kinds
from argosy.features.setup.applications import FILES, check_application
from argosy.features.setup.delivery.plan import Request
from argosy.gitops.delivery_file.reader import read_delivery
from argosy.gitops.delivery_file.values import Delivery, Secret
from argosy.gitops.health.settings import Customizations
from argosy.kube.objects import Manifest, read_manifests

MOST_BYTES: Final = 1 << 20


class Missing(UserError):
    """Raised if a required file is missing."""


def read_request(file: Path) -> Request:
    try:
        delivery = read_delivery(_read(file), str(file))
    except FileNotFoundError:
        advice = "name yours with -f, or create one with argosy init"
        raise UserError(f"file not found; {advice}", where=str(file)) from None
    values, unread = _values(delivery, file.parent)
    return Request(delivery, _checks(delivery, str(file)), values, unread)


def _checks(delivery: Delivery, where: str) -> tuple[Check, ...]:
    if delivery.health is None:
        return ()
    try:
        known = known_kinds(Customizations())
        kinds = [find_kind(word, known) for word in delivery.health.kinds] or USUAL_KINDS
        return wanted_checks(kinds, delivery.health.profile)
    except UserError as error:
        raise UserError(error.message, where=f"{where}: health") from error


def _values(delivery: Delivery, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the values of the repository Secret, and a message for each value that cannot be read."""
    credentials = delivery.repository.credentials
    if credentials is None:
        return {}, ()
    values = {"type": "git", "url": delivery.repository.url}
    if credentials.username:
        values["username"] = credentials.username
    unread = []
    for name, secret in (("password", credentials.password), ("sshPrivateKey", credentials.ssh_key)):
        if secret is None:
            continue
        if text := _secret_text(secret, folder):
            values[name] = text if name == "sshPrivateKey" else text.strip()
        else:
            unread.append(f"the repository's {name} cannot be read: {secret} is empty or missing")
    return values, tuple(unread)


def _secret_text(secret: Secret, folder: Path) -> str:
    if secret.env:
        return _text(os.environb.get(secret.env.encode(), b""), secret.env)
    file = folder / Path(secret.file).expanduser()
    try:
        return _text(_read(file), str(file))
    except FileNotFoundError:
        return ""


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:  # a device or a pipe may never end
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    if len(content) > MOST_BYTES:
        raise UserError(f"is larger than {MOST_BYTES >> 20} MiB; name the right file", where=str(file))
    return content


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        # from None: the cause holds the secret
        raise UserError("is not UTF-8 text; save it as UTF-8", where=where) from None


def read_applications(folder: Path) -> list[Manifest]:
    """Load the Applications of the three required files."""
    found: list[Manifest] = []
    for name in FILES:
        file = folder / name
        if not file.is_file():
            raise Missing("file not found; all three Applications are required, so restore it", where=str(file))
        manifests = read_manifests(_read(file), where=str(file))
        if not manifests:
            raise UserError("is empty; add an Application", where=str(file))
        found += (check_application(each, str(file)) for each in manifests)
    return found
