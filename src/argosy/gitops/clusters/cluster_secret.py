"""Reads an Argo CD cluster Secret into connection settings.

In: the values of a Secret, the allowed exec programs. Out: a Connection, or a UserError that names the field. Never:
prints a secret value; keeps a credential for an unencrypted connection; allows a program that is not listed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.errors import ArgosyError, UserError
from argosy.kube.client.connection import Connection, ExecPlugin
from argosy.kube.client.kubeconfig import EXEC_VERSIONS
from argosy.kube.objects import Manifest
from argosy.kube.objects.field_reader import Fields
from argosy.kube.schema.quantity import parse

# Write access to a Secret must not allow running arbitrary programs. These print credentials of cloud providers.
PROGRAMS: Final = (
    "argocd-k8s-auth",
    "aws",
    "aws-iam-authenticator",
    "gke-gcloud-auth-plugin",
    "kubelogin",
    "tbot",
)
EXEC_PROGRAMS: Final = "cluster.execPrograms"  # in argosy-cm: additional programs
MAX_MEMORY: Final = "cluster.maxMemory"  # in argosy-cm: memory limit for the lists and watches of one cluster
USUAL_MAX_MEMORY: Final = 4 * 2**30
AWS_PROGRAM: Final = "argocd-k8s-auth"
_LOADERS: Final = ("LD_", "DYLD_", "PYTHON", "NODE_", "BASH", "ENV")  # variables that make a program run something else


def programs_of(argosy_cm: Mapping[str, str]) -> frozenset[str]:
    """Return the programs that may run to obtain cluster credentials."""
    return frozenset({*PROGRAMS, *argosy_cm.get(EXEC_PROGRAMS, "").replace(",", " ").split()})


def max_memory_of(argosy_cm: Mapping[str, str]) -> int:
    """Return bytes; the default if the setting is missing or not a quantity such as `4Gi`."""
    given = argosy_cm.get(MAX_MEMORY, "").strip()
    try:
        return max(1, int(parse(given))) if given else USUAL_MAX_MEMORY
    except (ArgosyError, ValueError):
        return USUAL_MAX_MEMORY


def values_of(secret: Manifest) -> dict[str, str]:
    """Decode the fields that a connection needs. Raises UserError if one is not base64 text."""
    data, found = secret.get("data") or {}, {}
    for name in ("server", "name", "config"):
        try:
            found[name] = base64.b64decode(data.get(name) or "").decode().strip()
        except (binascii.Error, ValueError, TypeError):
            raise UserError(f"{name} is not base64-encoded text; correct it", where=_where(found)) from None
    return found


def connection_of(
    values: Mapping[str, str], programs: Collection[str] = PROGRAMS, max_memory: int = USUAL_MAX_MEMORY
) -> Connection:
    """argo: reads `server`, `name` and the JSON in `config`; value types are checked as strictly."""
    server, where = values.get("server", "").rstrip("/"), _where(values)
    check_address(server, where)
    config = _config(values.get("config", ""), where)
    tls = config.fields("tlsClientConfig")
    insecure, authority = tls.flag("insecure"), _bytes(tls, "caData")
    if insecure and authority:
        raise UserError(
            "config: specifying a root certificates file with the insecure flag is not allowed; remove caData or "
            "insecure", where=where,
        )  # fmt: skip
    lets_in = _credentials(config, tls, programs)
    if proxy := config.text("proxyUrl"):
        _check_proxy(proxy, where)
    return Connection(
        server=server,
        name=values.get("name") or server,
        ca_data=authority,
        insecure=insecure,
        tls_server_name=tls.text("serverName"),
        proxy_url=proxy,
        compressed=not config.flag("disableCompression"),
        max_memory=max_memory,
        **(lets_in if server.startswith("https://") else {}),
    )


def check_address(text: str, where: str) -> None:
    """Raise UserError if the text is not an API server address."""
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.fragment)
        has_user = "@" in parts.netloc
        _ = parts.port
    except ValueError:
        is_good = has_user = False
    if has_user:
        raise UserError("server contains a user or password; move them to config", where=where)
    if not is_good:
        raise UserError("server is not a valid address; write it as https://host:6443", where=where)


def _check_proxy(text: str, where: str) -> None:
    """Raise UserError without quoting the value, because it may contain a password."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good:
        raise UserError("config.proxyUrl is not a valid address; write it as http://host:3128", where=where)


def _where(values: Mapping[str, str]) -> str:
    return f"cluster {values.get('name') or values.get('server', '').rstrip('/')}"


def _config(text: str, where: str) -> Fields:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        raise UserError("config is not JSON; write it as Argo CD does", where=where) from None
    if not isinstance(found, dict):
        raise UserError("config is not a JSON object; write it as Argo CD does", where=where)
    return Fields(found, where, "config")


def _credentials(config: Fields, tls: Fields, programs: Collection[str]) -> dict[str, Any]:
    """argo: awsAuthConfig comes before execProviderConfig, and that before static credentials."""
    if (aws := config.fields("awsAuthConfig")).text("clusterName"):
        return {"exec_plugin": _aws(aws)}
    if (program := config.fields("execProviderConfig")).text("command"):
        return {"exec_plugin": _plugin(program, programs)}
    return {
        "token": _line(config, "bearerToken"),
        "username": _line(config, "username"),
        "password": config.text("password"),
        "cert_data": _bytes(tls, "certData"),
        "key_data": _bytes(tls, "keyData"),
    }


def _aws(given: Fields) -> ExecPlugin:
    arguments = ["aws", "--cluster-name", given.text("clusterName")]
    for field, flag in (("roleARN", "--role-arn"), ("profile", "--profile")):
        if text := given.text(field):
            arguments += [flag, text]
    return ExecPlugin(AWS_PROGRAM, "client.authentication.k8s.io/v1beta1", tuple(arguments), interactive_mode="Never")


def _plugin(given: Fields, programs: Collection[str]) -> ExecPlugin:
    command, where = given.text("command"), given.where
    version = given.text("apiVersion") or "client.authentication.k8s.io/v1beta1"
    if command not in programs:
        known = ", ".join(sorted(programs))
        raise UserError(
            f"config: execProviderConfig.command {command!r} is not allowed; allowed are {known}; add it to "
            "cluster.execPrograms of argosy-cm", where=where,
        )  # fmt: skip
    if version not in EXEC_VERSIONS:
        raise UserError(f"config: execProviderConfig.apiVersion {version!r} is not supported", where=where)
    env = given.texts("env")
    if bad := sorted(name for name in env if name == "PATH" or name.upper().startswith(_LOADERS)):
        raise UserError(f"config: execProviderConfig.env sets {bad[0]}, which could run another program", where=where)
    return ExecPlugin(
        command=command,
        api_version=version,
        args=given.all_texts("args"),
        env=env,
        install_hint=given.text("installHint"),
        interactive_mode="Never",
        provide_cluster_info=given.flag("provideClusterInfo"),
    )


def _line(config: Fields, field: str) -> str:
    """Read text that is sent in an HTTP header."""
    text = config.text(field)
    if not text.isprintable():
        message = f"config.{field} contains a line break or another control character; correct it"
        raise UserError(message, where=config.where)
    return text


def _bytes(tls: Fields, field: str) -> bytes:
    try:
        return base64.b64decode(tls.text(field), validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"config: tlsClientConfig.{field} is not base64", where=tls.where) from None
