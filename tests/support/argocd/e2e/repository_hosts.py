"""The hosts of repositories that Argo CD's end-to-end tests use: git over ssh and https, charts, and registries.

In: the folder in which the tests create their repositories. Out: running sshd, nginx, fcgiwrap and registries, and the
variables that tell the tests their ports. Never: changes the files of the machine's own sshd or nginx.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from support.argocd.programs import Installation, is_port_served
from support.control_plane import die_with_parent, free_ports
from support.deadlines import wait_until

# Names that the tests do not let us choose.
CLIENT_CERTIFICATE_PORT: Final = 9444
CHARTS_PORT: Final = 9080  # in the indexes of the chart repositories
REGISTRY_PORT: Final = 5000
REGISTRY_WITH_LOGIN_PORT: Final = 5001
PROGRAMS: Final = {
    "sshd": "openssh-server", "nginx": "nginx-light", "fcgiwrap": "fcgiwrap", "docker-registry": "docker-registry",
}  # fmt: skip
_REGISTRY: Final = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
{login}
"""


def find_missing_host() -> str:
    """Return why the hosts cannot be started; empty if they can."""
    if os.getuid() != 0:
        return "the hosts of repositories need root, because the tests log in to sshd as root"
    if missing := [program for program in PROGRAMS if find_program(program) is None]:
        packages = " ".join(PROGRAMS[program] for program in missing)
        return f"{', '.join(missing)} missing (apt-get install --no-install-recommends {packages})"
    for port in (CLIENT_CERTIFICATE_PORT, CHARTS_PORT, REGISTRY_PORT, REGISTRY_WITH_LOGIN_PORT):
        if is_port_served(port):
            return f"port {port}, which the tests name, is in use"
    return ""


def find_program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))


@contextlib.contextmanager
def run_repository_hosts(installation: Installation, data: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Start all hosts, and yield the variables of the tests that name them."""
    folder.mkdir()
    fixture = installation.source / "test/fixture"
    ssh_port, https_port, internal_port = free_ports(3)
    commands = {
        "sshd": _configure_sshd(fixture, folder, ssh_port),
        "fcgiwrap": ["fcgiwrap", "-s", f"unix:{folder}/fcgiwrap.socket"],
        "nginx": _configure_nginx(fixture, data, folder, https_port, internal_port),
        "registry": _configure_registry(folder, "registry", REGISTRY_PORT),
        "registry-with-login": _configure_registry(
            folder, "registry-with-login", REGISTRY_WITH_LOGIN_PORT, fixture / "testrepos/.oci-htpasswd"
        ),
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name, command in commands.items():
            processes.append(_start(name, command, folder))
        for port in (ssh_port, https_port, CLIENT_CERTIFICATE_PORT, REGISTRY_PORT, REGISTRY_WITH_LOGIN_PORT):
            wait_until(lambda port=port: is_port_served(port), f"port {port} is served; logs: {folder}")
        yield _list_variables(data, folder, ssh_port, https_port)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _start(name: str, command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    program = find_program(command[0])
    assert program is not None, f"{command[0]} is missing"
    with open(folder / f"{name}.log", "ab") as log:
        return subprocess.Popen(
            [program, *command[1:]], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
        )  # fmt: skip


def _list_variables(data: Path, folder: Path, ssh_port: int, https_port: int) -> dict[str, str]:
    ssh, https = f"ssh://root@localhost:{ssh_port}{data}", f"https://localhost:{https_port}/argo-e2e"
    return {
        "ARGOCD_E2E_REPO_SSH": f"{ssh}/testdata.git",
        "ARGOCD_E2E_REPO_SSH_SUBMODULE": f"{ssh}/submodule.git",
        "ARGOCD_E2E_REPO_SSH_SUBMODULE_PARENT": f"{ssh}/submoduleParent.git",
        "ARGOCD_E2E_SSH_KNOWN_HOSTS": str(folder / "ssh_known_hosts"),
        "ARGOCD_E2E_REPO_HTTPS": f"{https}/testdata.git",
        "ARGOCD_E2E_REPO_HTTPS_ORG": https,
        "ARGOCD_E2E_REPO_HTTPS_SUBMODULE": f"{https}/submodule.git",
        "ARGOCD_E2E_REPO_HTTPS_SUBMODULE_PARENT": f"{https}/submoduleParent.git",
    }


def _configure_sshd(fixture: Path, folder: Path, port: int) -> list[str]:
    """Return the command of an sshd with the host keys and the only user key of the tests."""
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd changes into it, and nothing creates it where sshd is no service
    testrepos = fixture / "testrepos"
    words = ["sshd", "-D", "-e", "-f", "/dev/null", "-p", str(port)]
    for algorithm in ("rsa", "ecdsa", "ed25519"):
        key = folder / f"ssh_host_{algorithm}_key"
        shutil.copy(testrepos / key.name, key)
        key.chmod(0o600)
        words += ["-h", str(key)]
    authorized = folder / "authorized_keys"
    shutil.copy(testrepos / "id_rsa.pub", authorized)
    options = {
        "ListenAddress": "127.0.0.1", "AuthorizedKeysFile": authorized, "StrictModes": "no", "PidFile": "none",
        "PermitRootLogin": "yes", "PasswordAuthentication": "no",
        "KexAlgorithms": "diffie-hellman-group-exchange-sha256",  # as in the tests' own host, after a regression
    }  # fmt: skip
    known_hosts = (testrepos / "ssh_known_hosts").read_text()
    (folder / "ssh_known_hosts").write_text(known_hosts.replace("[localhost]:2222", f"[localhost]:{port}"))
    return words + [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _configure_nginx(fixture: Path, data: Path, folder: Path, https_port: int, other_port: int) -> list[str]:
    """Return the command of an nginx with the tests' own configuration, and our ports and folders."""
    testrepos = fixture / "testrepos"
    configuration = (testrepos / "nginx.conf").read_text()
    replacements = {
        "/tmp/argo-e2e": str(data),
        "root /tmp/;": f"alias {data}/testdata.git/helm-repo$1;",
        "unix:/var/run/fcgiwrap.socket": f"unix:{folder}/fcgiwrap.socket",
        "../certs/": f"{fixture}/certs/",
        "auth_basic_user_file  .htpasswd": f"auth_basic_user_file {testrepos}/.htpasswd",
        "0.0.0.0:9081": f"127.0.0.1:{other_port}",
        "listen 9080": f"listen 127.0.0.1:{CHARTS_PORT}",
        "0.0.0.0:9443": f"127.0.0.1:{https_port}",
        "0.0.0.0:9444": f"127.0.0.1:{CLIENT_CERTIFICATE_PORT}",
        # One process: a worker would outlive a master that is killed.
        "error_log /dev/stdout info;": "user root;\ndaemon off;\nmaster_process off;\n"
        f"pid {folder}/nginx.pid;\nerror_log stderr info;",
        "http {": f"http {{ access_log {folder}/access.log;",
    }
    for old, new in replacements.items():
        assert old in configuration, f"{testrepos}/nginx.conf has no {old!r}"
        configuration = configuration.replace(old, new)
    (folder / "nginx.conf").write_text(configuration)
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def _configure_registry(folder: Path, name: str, port: int, passwords: Path | None = None) -> list[str]:
    login = f"auth: {{htpasswd: {{realm: localhost, path: {passwords}}}}}" if passwords else ""
    file = folder / f"{name}.yaml"
    file.write_text(_REGISTRY.format(folder=folder / name, port=port, login=login))
    return ["docker-registry", "serve", str(file)]
