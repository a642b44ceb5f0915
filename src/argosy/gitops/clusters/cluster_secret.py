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
from argosy.kube.client.connection_settings import Connection, ExecPlugin
from argosy.kube.client.kubeconfig import EXEC_VERSIONS
from argosy.kube.objects import Manifest
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.schema.quantity import parse

# Write access to a Secret must not allow running arbitrary programs. These print credentials of cloud providers.
DEFAULT_EXEC_PROGRAMS: Final = (
    "argocd-k8s-auth",
    "aws",
    "aws-iam-authenticator",
    "gke-gcloud-auth-plugin",
    "kubelogin",
    "tbot",
)
EXEC_PROGRAMS_SETTING: Final = "cluster.execPrograms"  # in argosy-cm: additional programs
MAX_MEMORY_SETTING: Final = "cluster.maxMemory"  # in argosy-cm: memory limit for the lists and watches of one cluster
DEFAULT_MAX_MEMORY_BYTES: Final = 4 * 2**30
AWS_EXEC_PROGRAM: Final = "argocd-k8s-auth"
_UNSAFE_VARIABLE_PREFIXES: Final = (
    "LD_",
    "DYLD_",
    "PYTHON",
    "NODE_",
    "BASH",
    "ENV",
)  # variables that make a program run something else


def read_exec_programs(argosy_cm: Mapping[str, str]) -> frozenset[str]:
    """Return the programs that may run to obtain cluster credentials."""
    return frozenset({*DEFAULT_EXEC_PROGRAMS, *argosy_cm.get(EXEC_PROGRAMS_SETTING, "").replace(",", " ").split()})


def read_max_memory(argosy_cm: Mapping[str, str]) -> int:
    """Return bytes; the default if the setting is missing or not a quantity such as `4Gi`."""
    configured = argosy_cm.get(MAX_MEMORY_SETTING, "").strip()
    try:
        return max(1, int(parse(configured))) if configured else DEFAULT_MAX_MEMORY_BYTES
    except (ArgosyError, ValueError):
        return DEFAULT_MAX_MEMORY_BYTES


def read_secret_values(secret: Manifest) -> dict[str, str]:
    """Decode the fields that a connection needs. Raises UserError if one is not base64 text."""
    data, values = secret.get("data") or {}, {}
    for name in ("server", "name", "config"):
        try:
            values[name] = base64.b64decode(data.get(name) or "").decode().strip()
        except (binascii.Error, ValueError, TypeError):
            raise UserError(f"{name} is not base64-encoded text; correct it", where=_describe_cluster(values)) from None
    return values


def build_connection(
    values: Mapping[str, str],
    programs: Collection[str] = DEFAULT_EXEC_PROGRAMS,
    max_memory: int = DEFAULT_MAX_MEMORY_BYTES,
) -> Connection:
    """argo: reads `server`, `name` and the JSON in `config`; value types are checked as strictly."""
    server, where = values.get("server", "").rstrip("/"), _describe_cluster(values)
    check_server_address(server, where)
    config = _parse_config(values.get("config", ""), where)
    tls = config.read_map("tlsClientConfig")
    insecure, authority = tls.read_bool("insecure"), _read_base64(tls, "caData")
    if insecure and authority:
        raise UserError(
            "config: specifying a root certificates file with the insecure flag is not allowed; remove caData or "
            "insecure", where=where,
        )  # fmt: skip
    credentials = _read_credentials(config, tls, programs)
    if proxy := config.read_text("proxyUrl"):
        _check_proxy(proxy, where)
    return Connection(
        server=server,
        name=values.get("name") or server,
        ca_data=authority,
        insecure=insecure,
        tls_server_name=tls.read_text("serverName"),
        proxy_url=proxy,
        compressed=not config.read_bool("disableCompression"),
        max_memory_bytes=max_memory,
        **(credentials if server.startswith("https://") else {}),
    )


def check_server_address(text: str, where: str) -> None:
    """Raise UserError if the text is not an API server address."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.fragment)
        has_user = "@" in parts.netloc
        _ = parts.port
    except ValueError:
        is_valid = has_user = False
    if has_user:
        raise UserError("server contains a user or password; move them to config", where=where)
    if not is_valid:
        raise UserError("server is not a valid address; write it as https://host:6443", where=where)


def _check_proxy(text: str, where: str) -> None:
    """Raise UserError without quoting the value, because it may contain a password."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UserError("config.proxyUrl is not a valid address; write it as http://host:3128", where=where)


def _describe_cluster(values: Mapping[str, str]) -> str:
    return f"cluster {values.get('name') or values.get('server', '').rstrip('/')}"


def _parse_config(text: str, where: str) -> FieldReader:
    try:
        config = json.loads(text or "{}")
    except ValueError:
        raise UserError("config is not JSON; write it as Argo CD does", where=where) from None
    if not isinstance(config, dict):
        raise UserError("config is not a JSON object; write it as Argo CD does", where=where)
    return FieldReader(config, where, "config")


def _read_credentials(config: FieldReader, tls: FieldReader, programs: Collection[str]) -> dict[str, Any]:
    """argo: awsAuthConfig comes before execProviderConfig, and that before static credentials."""
    if (aws := config.read_map("awsAuthConfig")).read_text("clusterName"):
        return {"exec_plugin": _build_aws_plugin(aws)}
    if (exec_config := config.read_map("execProviderConfig")).read_text("command"):
        return {"exec_plugin": _build_exec_plugin(exec_config, programs)}
    return {
        "token": _read_header_value(config, "bearerToken"),
        "username": _read_header_value(config, "username"),
        "password": config.read_text("password"),
        "cert_data": _read_base64(tls, "certData"),
        "key_data": _read_base64(tls, "keyData"),
    }


def _build_aws_plugin(config: FieldReader) -> ExecPlugin:
    arguments = ["aws", "--cluster-name", config.read_text("clusterName")]
    for field, flag in (("roleARN", "--role-arn"), ("profile", "--profile")):
        if text := config.read_text(field):
            arguments += [flag, text]
    return ExecPlugin(
        AWS_EXEC_PROGRAM, "client.authentication.k8s.io/v1beta1", tuple(arguments), interactive_mode="Never"
    )


def _build_exec_plugin(config: FieldReader, programs: Collection[str]) -> ExecPlugin:
    command, where = config.read_text("command"), config.where
    version = config.read_text("apiVersion") or "client.authentication.k8s.io/v1beta1"
    if command not in programs:
        allowed = ", ".join(sorted(programs))
        raise UserError(
            f"config: execProviderConfig.command {command!r} is not allowed; allowed are {allowed}; add it to "
            "cluster.execPrograms of argosy-cm", where=where,
        )  # fmt: skip
    if version not in EXEC_VERSIONS:
        raise UserError(f"config: execProviderConfig.apiVersion {version!r} is not supported", where=where)
    env = config.read_text_map("env")
    if unsafe := sorted(name for name in env if name == "PATH" or name.upper().startswith(_UNSAFE_VARIABLE_PREFIXES)):
        raise UserError(
            f"config: execProviderConfig.env sets {unsafe[0]}, which could run another program", where=where
        )
    return ExecPlugin(
        command=command,
        api_version=version,
        args=config.read_text_list("args"),
        env=env,
        install_hint=config.read_text("installHint"),
        interactive_mode="Never",
        provide_cluster_info=config.read_bool("provideClusterInfo"),
    )


def _read_header_value(config: FieldReader, field: str) -> str:
    """Read text that is sent in an HTTP header."""
    text = config.read_text(field)
    if not text.isprintable():
        message = f"config.{field} contains a line break or another control character; correct it"
        raise UserError(message, where=config.where)
    return text


def _read_base64(tls: FieldReader, field: str) -> bytes:
    try:
        return base64.b64decode(tls.read_text(field), validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"config: tlsClientConfig.{field} is not base64", where=tls.where) from None
