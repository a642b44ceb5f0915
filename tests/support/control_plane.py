"""A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager, if they have been built.

`build.sh` builds them into the cache folder. No kubelet and no scheduler: Pods stay Pending, as the contract expects.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import datetime
import ipaddress
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from support.deadlines import HANG_SECONDS
from support.failure_report import record_log

# Not from HOME, which tests change.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or f"{pwd.getpwuid(os.getuid()).pw_dir}/.cache", "argosy/realcluster")
ETCD_NAMES = ("etcd", "v3", "server")  # `go build` names a program after the last part of its module's path
ADMIN_TOKEN = "admin-of-a-test"  # good for one temporary server on loopback


def programs() -> dict[str, Path] | None:
    """Paths of the three programs; None if one is missing."""
    paths = {name: CACHE / name for name in ("kube-apiserver", "kube-controller-manager")}
    etcd = next((CACHE / name for name in ETCD_NAMES if (CACHE / name).is_file()), None)
    if etcd is None or not all(path.is_file() for path in paths.values()):
        return None
    return {**paths, "etcd": etcd}


class RealCluster:
    """A running control plane. The user of `kubeconfig` is in system:masters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.etcd_url = ""
        self.server = ""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *, with_controllers: bool = True) -> None:
        paths = programs()
        if paths is None:
            raise FileNotFoundError(f"no control plane in {CACHE}: run tests/realcluster/build.sh")
        etcd_port, peer_port, api_port = free_ports(3)
        self.etcd_url, self.server = f"http://127.0.0.1:{etcd_port}", f"https://127.0.0.1:{api_port}"
        make_certificates(self.folder)
        (self.folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')
        write_kubeconfig(self.kubeconfig, self.server, (self.folder / "ca.crt").read_bytes(), ADMIN_TOKEN)
        self._run("etcd", paths["etcd"], etcd_arguments(self.folder, self.etcd_url, peer_port))
        self._run("kube-apiserver", paths["kube-apiserver"], apiserver_arguments(self.folder, self.etcd_url, api_port))
        self._wait_until_ready()
        if with_controllers:
            self._run("kube-controller-manager", paths["kube-controller-manager"], controller_arguments(self.folder))

    def _run(self, name: str, program: Path, arguments: Sequence[str]) -> None:
        with open(record_log(self.folder / f"{name}.log"), "wb") as log:
            self.processes[name] = subprocess.Popen(
                [str(program), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env={**os.environ, "NO_PROXY": "*", "GOGC": "300"},
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
            )

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + HANG_SECONDS
        while time.monotonic() < until:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{self._tail(name)}")
            if self._ready():
                return
            time.sleep(0.1)
        raise TimeoutError(f"kube-apiserver was not ready in {HANG_SECONDS:g} s:\n{self._tail('kube-apiserver')}")

    def _ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        request = urllib.request.Request(f"{self.server}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        secure = urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), secure)
        try:
            with opener.open(request, timeout=HANG_SECONDS) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def compact(self) -> None:
        """Compact etcd's history. The server's watch cache still has most kinds, but never Events."""

        def ask(path: str, question: dict[str, object]) -> dict[str, dict[str, str]]:
            request = urllib.request.Request(self.etcd_url + path, data=json.dumps(question).encode())
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=HANG_SECONDS) as answer:
                return json.load(answer)

        revision = ask("/v3/kv/range", {"key": base64.b64encode(b"/").decode(), "limit": 1})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def stop(self) -> None:
        """Stop in reverse order: an API server without etcd does not shut down cleanly."""
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def die_with_parent() -> None:
    """A test run that is killed must not leave a control plane behind (Linux: PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextlib.contextmanager
def real_cluster(*, with_controllers: bool = True) -> Iterator[RealCluster]:
    folder = Path(tempfile.mkdtemp(prefix="argosy-realcluster-"))
    cluster = RealCluster(folder)
    try:
        cluster.start(with_controllers=with_controllers)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def etcd_arguments(folder: Path, url: str, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        "--data-dir",
        str(folder / "etcd"),
        "--listen-client-urls",
        url,
        "--advertise-client-urls",
        url,
        "--listen-peer-urls",
        peer,
        "--initial-advertise-peer-urls",
        peer,
        "--initial-cluster",
        f"default={peer}",
        "--log-level",
        "error",
    ]


def apiserver_arguments(folder: Path, etcd_url: str, port: int) -> list[str]:
    return [
        "--etcd-servers",
        etcd_url,
        "--secure-port",
        str(port),
        "--bind-address",
        "127.0.0.1",
        "--tls-cert-file",
        str(folder / "server.crt"),
        "--tls-private-key-file",
        str(folder / "server.key"),
        "--token-auth-file",
        str(folder / "tokens.csv"),
        "--authorization-mode",
        "RBAC",
        "--service-account-issuer",
        "https://kubernetes.default.svc",
        "--service-account-key-file",
        str(folder / "account.key"),
        "--service-account-signing-key-file",
        str(folder / "account.key"),
        "--service-cluster-ip-range",
        "10.0.0.0/24",
        "--cert-dir",
        str(folder / "certs"),
        "--disable-admission-plugins",
        "ServiceAccount",
    ]


def controller_arguments(folder: Path) -> list[str]:
    return [
        "--kubeconfig",
        str(folder / "kubeconfig"),
        "--leader-elect=false",
        "--secure-port",
        "0",
        "--service-account-private-key-file",
        str(folder / "account.key"),
        "--root-ca-file",
        str(folder / "ca.crt"),
        "--use-service-account-credentials=false",
        "--concurrent-gc-syncs",
        "5",
    ]


# Controllers that the embedded server implements, by their names in kube-controller-manager.
CONTROLLERS_OF_THE_SANDBOX = (
    "garbage-collector-controller,namespace-controller,serviceaccount-controller,"
    "root-ca-certificate-publisher-controller,clusterrole-aggregation-controller"
)


@contextlib.contextmanager
def real_cluster_with(controllers: str) -> Iterator[RealCluster]:
    """A control plane whose kube-controller-manager runs only these controllers."""
    paths = programs()
    assert paths is not None
    with real_cluster(with_controllers=False) as started:
        arguments = [*controller_arguments(started.folder), f"--controllers={controllers}"]
        started._run("kube-controller-manager", paths["kube-controller-manager"], arguments)
        yield started


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()


def make_certificates(folder: Path) -> None:
    """Create a CA, a server certificate for loopback, and the signing key of service account tokens."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "argosy test authority")])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    authority = (
        builder(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("localhost"),
            x509.DNSName("kubernetes.default.svc"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
    )
    server = builder(server_name, server_key).add_extension(names, critical=False).sign(authority_key, hashes.SHA256())
    account_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / "server.crt").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    write_key(folder / "server.key", server_key)
    write_key(folder / "account.key", account_key)


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def write_kubeconfig(path: Path, server: str, authority: bytes, token: str) -> None:
    """Written as JSON, which is valid YAML."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "real",
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "clusters": [
            {
                "name": "real",
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()},
            }
        ],
        "users": [{"name": "admin", "user": {"token": token}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))
