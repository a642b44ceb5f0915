"""What it takes to reach one API server: where it is, whom to trust, who we are.

In: nothing. Out: plain frozen values. Never: opens a file or a socket; prints a secret (see `__repr__`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.kube.client import User

ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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
    """Data goes before files, and a token file before a token, as in kubectl."""

    server: str
    name: str = ""  # the context, for messages
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
    max_memory: int = 0  # bytes that its lists and watches may take; 0: no limit

    @property
    def secure(self) -> bool:
        return self.server.startswith("https://")


def in_cluster() -> Connection:
    """The connection that every Pod is given. The token is read again as it is rotated."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    token, authority = ACCOUNT_DIR / "token", ACCOUNT_DIR / "ca.crt"
    if not (host and port and token.is_file()):
        raise UserError(
            "this process is not in a Pod with a service account: give a kubeconfig instead", where="in-cluster"
        )
    namespace = ACCOUNT_DIR / "namespace"
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        name="in-cluster",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca_file=str(authority) if authority.is_file() else "",
        token_file=str(token),
    )
