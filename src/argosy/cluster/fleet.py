"""A cluster's Secret in Argo CD's form → what it takes to reach that cluster.

In: the values of a Secret, programs that may be run. Out: a Connection, or a UserError that names the field. Never:
says a secret; sends a credential where nothing is encrypted; runs a program that nobody allowed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from argosy.cluster.connection import Connection, ExecPlugin
from argosy.cluster.kubeconfig import EXEC_VERSIONS
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest

# Whoever may write a Secret must not be able to run anything at all: these print credentials of clouds.
PROGRAMS: Final = (
    "argocd-k8s-auth",
    "aws",
    "aws-iam-authenticator",
    "gke-gcloud-auth-plugin",
    "kubelogin",
    "tbot",
)
AWS_PROGRAM: Final = "argocd-k8s-auth"
_LOADERS: Final = ("LD_", "DYLD_", "PYTHON", "NODE_", "BASH", "ENV")  # variables that make a program run something else


def values_of(secret: Manifest) -> dict[str, str]:
    """What is not base64 of text counts as not there."""
    found: dict[str, str] = {}
    for name, text in (secret.get("data") or {}).items():
        try:
            found[name] = base64.b64decode(text or "").decode().strip()
        except (binascii.Error, ValueError, TypeError):
            continue
    return found


def connection_of(values: Mapping[str, str], programs: Collection[str] = PROGRAMS) -> Connection:
    """argo: `server`, `name` and the JSON in `config`."""
    server = values.get("server", "").rstrip("/")
    name = values.get("name") or server
    where = f"cluster {name}"
    config = _config(values.get("config", ""), where)
    tls = config.get("tlsClientConfig") or {}
    if not isinstance(tls, dict):
        raise UserError("config: tlsClientConfig is no object", where=where)
    insecure, authority = tls.get("insecure") is True, _bytes(tls, "caData", where)
    if insecure and authority:
        raise UserError(
            "config: specifying a root certificates file with the insecure flag is not allowed; remove caData or "
            "insecure", where=where,
        )  # fmt: skip
    lets_in = _credentials(config, tls, where, programs) if server.startswith("https://") else {}
    return Connection(
        server=server,
        name=name,
        ca_data=authority,
        insecure=insecure,
        tls_server_name=str(tls.get("serverName") or ""),
        proxy_url=str(config.get("proxyUrl") or ""),
        compressed=config.get("disableCompression") is not True,
        **lets_in,
    )


def _config(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        raise UserError("config is not JSON; write it as Argo CD does", where=where) from None
    if not isinstance(found, dict):
        raise UserError("config is no object; write it as Argo CD does", where=where)
    return found


def _credentials(
    config: Mapping[str, Any], tls: Mapping[str, Any], where: str, programs: Collection[str]
) -> dict[str, Any]:
    """argo: AWS before a program, and a program before what is written here."""
    if isinstance(aws := config.get("awsAuthConfig"), dict) and aws.get("clusterName"):
        return {"exec_plugin": _aws(aws)}
    if isinstance(program := config.get("execProviderConfig"), dict) and program.get("command"):
        return {"exec_plugin": _plugin(program, where, programs)}
    return {
        "token": str(config.get("bearerToken") or ""),
        "username": str(config.get("username") or ""),
        "password": str(config.get("password") or ""),
        "cert_data": _bytes(tls, "certData", where),
        "key_data": _bytes(tls, "keyData", where),
    }


def _aws(given: Mapping[str, Any]) -> ExecPlugin:
    arguments = ["aws", "--cluster-name", str(given["clusterName"])]
    for field, flag in (("roleARN", "--role-arn"), ("profile", "--profile")):
        if given.get(field):
            arguments += [flag, str(given[field])]
    return ExecPlugin(AWS_PROGRAM, "client.authentication.k8s.io/v1beta1", tuple(arguments), interactive_mode="Never")


def _plugin(given: Mapping[str, Any], where: str, programs: Collection[str]) -> ExecPlugin:
    command, version = str(given["command"]), str(given.get("apiVersion") or "client.authentication.k8s.io/v1beta1")
    if command not in programs:
        known = ", ".join(sorted(programs))
        raise UserError(
            f"config: execProviderConfig.command {command!r} is not run; allowed are {known}; add it to "
            "cluster.execPrograms of argosy-cm", where=where,
        )  # fmt: skip
    if version not in EXEC_VERSIONS:
        raise UserError(f"config: execProviderConfig.apiVersion {version!r} is not known", where=where)
    given_env = given.get("env")
    env = given_env if isinstance(given_env, dict) else {}
    if bad := sorted(name for name in env if name == "PATH" or name.upper().startswith(_LOADERS)):
        raise UserError(f"config: execProviderConfig.env sets {bad[0]}, which may run something else", where=where)
    return ExecPlugin(
        command=command,
        api_version=version,
        args=tuple(str(each) for each in given.get("args") or ()),
        env={str(name): str(text) for name, text in env.items()},
        install_hint=str(given.get("installHint") or ""),
        interactive_mode="Never",
        provide_cluster_info=given.get("provideClusterInfo") is True,
    )


def _bytes(tls: Mapping[str, Any], field: str, where: str) -> bytes:
    try:
        return base64.b64decode(str(tls.get(field) or ""), validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"config: tlsClientConfig.{field} is not base64", where=where) from None
