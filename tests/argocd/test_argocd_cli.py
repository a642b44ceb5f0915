"""The real `argocd` command against Argo CD's server and against argosy's: the same exit codes and the same output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.argocd.applicationset_controllers import run_applicationset_controllers
from support.argocd.cli import Servers, run_servers
from support.argocd.known_differences import find_unexplained
from support.argocd.pair import CONTROL, Pair
from support.certificates import issue
from support.engine import Repository

pytestmark = pytest.mark.tier("argocd")

APP: Final = "cli"
COMMANDS: Final = Path(__file__).with_name("argocd_commands.txt")


def build_config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"tier": "web"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
        },
    },
}


@pytest.fixture(scope="module")
def names(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An Application on both sides, files for commands, and their names in command lines."""
    folder: Path = tmp_path_factory.mktemp("cli")
    repository = Repository(folder / "repository")
    first = repository.push({"app/settings.yaml": build_config_map("settings", a="1"), "app/web.yaml": DEPLOYMENT})
    repository.push({"app/settings.yaml": build_config_map("settings", a="2")})
    application: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": APP, "namespace": CONTROL, "labels": {"team": "ml"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": repository.url, "path": "app", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "cli"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        },
    }
    files = Repository(folder / "files")
    files.push({"app/settings.yaml": build_config_map("settings", a="3"), "app/web.yaml": DEPLOYMENT})
    destination = {"server": "https://kubernetes.default.svc", "namespace": "cli-file"}
    spec: dict[str, Any] = {**application["spec"], "destination": destination}
    from_file = {**application, "metadata": {"name": "from-file"}, "spec": spec}
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "from-file"},
               "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}}  # fmt: skip
    template = {"metadata": {"name": "sets-{{.name}}"}, "spec": spec}
    generators = [{"list": {"elements": [{"name": "one"}]}}]
    sets = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "sets"},
            "spec": {"goTemplate": True, "generators": generators, "template": template}}  # fmt: skip
    files.push({"application.yaml": from_file, "project.yaml": project, "applicationset.yaml": sets})
    files.push(
        {"certificate.pem": issue("git.example").pem.decode(), "known_hosts": f"host.example {_make_ssh_key()}\n"}
    )
    pair.apply(application)
    pair.wait_until_settled(APP)
    pair.wait_until_quiet([APP])
    yield {"url": repository.url, "first": first, "files": str(files.path)}


def _make_ssh_key() -> str:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@pytest.fixture(scope="module")
def servers(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder: Path = tmp_path_factory.mktemp("servers")
    with run_servers(pair, folder) as started, run_applicationset_controllers(pair, folder / "applicationsets"):
        yield started


def _list_commands() -> list[Any]:
    lines = [line for line in COMMANDS.read_text().splitlines() if not line.startswith("#")]
    return [pytest.param(line, id=f"{number:03} {re.sub(r'[^a-z0-9-]+', ' ', line)[:60].strip()}")
            for number, line in enumerate(lines, 1)]  # fmt: skip


@pytest.mark.parametrize("command", _list_commands())
def test_command_prints_the_same(pair: Pair, names: dict[str, str], servers: Servers, command: str) -> None:
    words = [word.format(**names) if "{" in word else word for word in shlex.split(command)]
    differences = servers.compare(*words)
    pair.wait_until_quiet([APP])
    unexplained = find_unexplained(f"argocd {command}", differences)
    assert not unexplained, "\n".join(map(str, unexplained))
