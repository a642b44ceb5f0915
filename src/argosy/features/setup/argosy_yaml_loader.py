"""Reads argosy.yaml with its secrets, or a folder of Applications.

In: paths and environment variables. Out: a setup request, or manifests. Never: calls a cluster; reads a file of
unlimited size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.features.health_checks.argocd_install.merge import (
    DEFAULT_KINDS,
    RequestedHealthCheck,
    build_requested_checks,
)
from argosy.features.health_checks.kind_name_lookup import find_kind, list_known_kinds
from argosy.features.setup.application_apply import APPLICATION_FILE_NAMES, check_application
from argosy.features.setup.delivery.cluster_setup_plan import SetupRequest
from argosy.gitops.delivery_file.delivery_value_types import DeliveryFile, SecretSource
from argosy.gitops.delivery_file.reader import read_delivery_file
from argosy.gitops.health.settings import Customizations
from argosy.kube.objects import Manifest, read_manifests

MAX_FILE_BYTES: Final = 1 << 20


class RequiredFileMissing(UserError):
    """Raised if a required file is missing."""


def load_setup_request(file: Path) -> SetupRequest:
    try:
        delivery = read_delivery_file(_load_file(file), str(file))
    except FileNotFoundError:
        advice = "name yours with -f, or create one with argosy init"
        raise UserError(f"file not found; {advice}", where=str(file)) from None
    values, unread = _load_secret_values(delivery, file.parent)
    return SetupRequest(delivery, _build_checks(delivery, str(file)), values, unread)


def _build_checks(delivery: DeliveryFile, where: str) -> tuple[RequestedHealthCheck, ...]:
    if delivery.health is None:
        return ()
    try:
        known_group_kinds = list_known_kinds(Customizations())
        kinds = [find_kind(word, known_group_kinds) for word in delivery.health.kinds] or DEFAULT_KINDS
        return build_requested_checks(kinds, delivery.health.profile)
    except UserError as error:
        raise UserError(error.message, where=f"{where}: health") from error


def _load_secret_values(delivery: DeliveryFile, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
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
        if text := _load_secret_text(secret, folder):
            values[name] = text if name == "sshPrivateKey" else text.strip()
        else:
            unread.append(f"the repository's {name} cannot be read: {secret} is empty or missing")
    return values, tuple(unread)


def _load_secret_text(secret: SecretSource, folder: Path) -> str:
    if secret.env:
        return _decode_text(os.environb.get(secret.env.encode(), b""), secret.env)
    file = folder / Path(secret.file).expanduser()
    try:
        return _decode_text(_load_file(file), str(file))
    except FileNotFoundError:
        return ""


def _load_file(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:  # a device or a pipe may never end
            content = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    if len(content) > MAX_FILE_BYTES:
        raise UserError(f"is larger than {MAX_FILE_BYTES >> 20} MiB; name the right file", where=str(file))
    return content


def _decode_text(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        # from None: the cause holds the secret
        raise UserError("is not UTF-8 text; save it as UTF-8", where=where) from None


def load_applications(folder: Path) -> list[Manifest]:
    """Load the Applications of the three required files."""
    applications: list[Manifest] = []
    for name in APPLICATION_FILE_NAMES:
        file = folder / name
        if not file.is_file():
            raise RequiredFileMissing(
                "file not found; all three Applications are required, so restore it", where=str(file)
            )
        manifests = read_manifests(_load_file(file), where=str(file))
        if not manifests:
            raise UserError("is empty; add an Application", where=str(file))
        applications += (check_application(manifest, str(file)) for manifest in manifests)
    return applications
