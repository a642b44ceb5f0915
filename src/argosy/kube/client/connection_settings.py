"""Connection settings of one API server: address, trusted CA, credentials.

In: values, or the environment of a Pod. Out: frozen dataclasses. Never: opens a socket; shows a secret in a repr.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.kube.client import User

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    command: str
    api_version: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    cluster_config: Any = None  # the cluster's extension `client.authentication.k8s.io/exec`


@dataclass(frozen=True)
class Connection:
    """Settings of one API server. As in kubectl, data takes precedence over files, and a token file over a token."""

    server: str
    name: str = ""  # the kubeconfig context, for messages
    namespace: str = "default"
    ca_file: str = ""
    ca_data: bytes = field(default=b"", repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    compressed: bool = True
    cert_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    acting_as: User | None = None
    max_memory_bytes: int = 0  # bytes for its lists and watches; 0: no limit

    @property
    def is_secure(self) -> bool:
        return self.server.startswith("https://")


def load_in_cluster_connection() -> Connection:
    """Build the connection from the service account of this Pod. Its token file is read again after rotation."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    token, ca_file = SERVICE_ACCOUNT_DIR / "token", SERVICE_ACCOUNT_DIR / "ca.crt"
    if not (host and port and token.is_file()):
        raise UserError(
            "this process does not run in a Pod with a service account: use a kubeconfig instead", where="in-cluster"
        )
    namespace = SERVICE_ACCOUNT_DIR / "namespace"
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        name="in-cluster",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca_file=str(ca_file) if ca_file.is_file() else "",
        token_file=str(token),
    )
