"""The real `argocd` CLI against argosy's server, and the real server's messages beside actual."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from argosy.web.grpc.message_codec import decode_message
from argosy.web.grpc.service_table import find_method
from support.argocd.programs import ArgoCD, Installation, run_argocd
from support.deadlines import HANG_SECONDS
from support.demo import Demo, demo
from support.grpc_web import MEDIA, encode_request, frame, read_frames
from support.page_site import Client

pytestmark = pytest.mark.tier("argocd")
NAMESPACE = "openshift-gitops"
SOURCE = ("--repo", "https://github.com/your-org/llmops-demo.git", "--revision", "main")
OVERLAY = "llmops-via-argocd/deploy_model/overlays"
HERE = ("--dest-server", "https://kubernetes.default.svc", "--dest-namespace", "other")
APPLICATION_SET = {
    "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
    "metadata": {"name": "set", "namespace": NAMESPACE},
    "spec": {
        "generators": [{"matrix": {"generators": [
            {"list": {"elements": [{"env": "dev", "replicas": 2}]}}, {"list": {"elements": [{"color": "red"}]}},
        ]}}],
        "template": {"metadata": {"name": "set-{{env}}"}, "spec": {
            "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "set"},
            "source": {"repoURL": SOURCE[1], "path": f"{OVERLAY}/dev", "targetRevision": "main"},
        }},
    },
}  # fmt: skip


@dataclass
class CommandLine:
    """The CLI with its own home, logged in to the page of a demo."""

    program: Path
    address: str
    home: Path
    flags: tuple[str, ...] = ("--plaintext",)
    seconds: list[float] = field(default_factory=list)

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NO_PROXY": "*", "EDITOR": "true"}
        command = [str(self.program), *words, "--server", self.address, *self.flags]
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, cwd=self.home,
        )  # fmt: skip

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command; return its output, or its errors if it must fail."""
        started = time.monotonic()
        process = self.start(*words)
        try:
            output, errors = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"argocd {' '.join(words)} hangs: {process.communicate()}") from None
        self.seconds.append(time.monotonic() - started)
        assert process.returncode == code, f"argocd {' '.join(words)}: {process.returncode}\n{output}{errors}"
        return output if code in (0, 1) else errors

    def read(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json"))

    def log_in(self, password: str) -> None:
        words = ("login", self.address, *self.flags, "--username", "admin", "--password", password)
        process = subprocess.run(
            [str(self.program), *words], env={"PATH": os.environ["PATH"], "HOME": str(self.home), "NO_PROXY": "*"},
            capture_output=True, text=True, timeout=HANG_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.returncode == 0, process.stdout + process.stderr


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo"), "--port", "0", "--no-browser") as started:
        yield started


@pytest.fixture(scope="module")
def password(running: Demo) -> str:
    return running.argosy("admin", "initial-password").split()[0]


@pytest.fixture(scope="module")
def cli(
    installation: Installation, running: Demo, password: str, tmp_path_factory: pytest.TempPathFactory
) -> CommandLine:
    home = tmp_path_factory.mktemp("home")
    command_line = CommandLine(installation.folder / "argocd", urlsplit(running.where["url"]).netloc, home)
    command_line.log_in(password)
    return command_line


def wait_until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.2)


# Reading


def test_applications_are_listed_and_read(cli: CommandLine) -> None:
    names = [app["metadata"]["name"] for app in cli.read("app", "list")]
    assert names == ["llmops-dev", "llmops-production", "llmops-staging"]
    assert cli.read("app", "get", "llmops-dev")["status"]["sync"]["status"] == "Synced"
    assert "permission denied" in cli.run("app", "get", "missing", code=20)


def test_manifests_resources_history_and_logs_are_read(cli: CommandLine) -> None:
    assert "kind: InferenceService" in cli.run("app", "manifests", "llmops-dev")
    assert "ReplicaSet" in cli.run("app", "resources", "llmops-dev", "--output", "tree")
    assert "main (" in cli.run("app", "history", "llmops-dev")
    assert "simulated by argosy" in cli.run("app", "logs", "llmops-dev", "--tail", "2")
    assert "Deployment" in cli.run("app", "get-resource", "llmops-dev", "--kind", "Deployment")
    assert "restart" in cli.run("app", "actions", "list", "llmops-dev")


def test_a_diff_has_the_lines_of_kubectl(cli: CommandLine) -> None:
    assert "/Secret llmops-prod/" in cli.run("app", "diff", "llmops-production", code=1)
    assert cli.run("app", "diff", "llmops-dev") == ""


def test_a_server_side_diff_has_the_same_objects(cli: CommandLine) -> None:
    words = ("app", "diff", "llmops-staging")
    plain, by_server = cli.run(*words, code=1), cli.run(*words, "--server-side-diff", code=1)
    headings = [line for line in plain.splitlines() if line.startswith("=====")]
    assert headings == [line for line in by_server.splitlines() if line.startswith("=====")] != []
    cli.run("app", "diff", "llmops-dev", "--server-side-diff")


def test_the_version_the_account_and_the_settings_are_read(cli: CommandLine) -> None:
    assert cli.read("version")["server"]["Version"]
    assert cli.read("account", "get-user-info")["username"] == "admin"
    assert [account["name"] for account in cli.read("account", "list")] == ["admin"]
    assert cli.run("account", "can-i", "get", "projects", "default").strip() == "yes"
    assert cli.read("cluster", "list")[0]["name"] == "in-cluster"
    assert cli.read("cluster", "get", "in-cluster")["server"] == "https://kubernetes.default.svc"


def test_empty_lists_are_empty(cli: CommandLine) -> None:
    for words in (("repo", "list"), ("repocreds", "list"), ("gpg", "list"), ("appset", "list")):
        assert len(cli.run(*words).splitlines()) == 1, words


# Changing


def test_a_sync_is_watched_until_it_has_ended(cli: CommandLine) -> None:
    assert "Phase:              Succeeded" in cli.run("app", "sync", "llmops-staging")
    assert cli.read("app", "get", "llmops-staging")["status"]["sync"]["status"] == "Synced"
    cli.run("app", "wait", "llmops-staging", "--health", "--sync", "--timeout", "60")
    assert "no operation is in progress" in cli.run("app", "terminate-op", "llmops-staging", code=20)


def test_a_wait_sees_a_change_that_comes_later(cli: CommandLine) -> None:
    waiting = cli.start("app", "wait", "llmops-production", "--sync", "--timeout", str(int(HANG_SECONDS)))
    try:
        time.sleep(1.0)
        assert waiting.poll() is None
        cli.run("app", "sync", "llmops-production", "--async")
        assert waiting.wait(HANG_SECONDS) == 0, waiting.communicate()
    finally:
        waiting.kill()
        waiting.communicate()


def test_a_rollback_goes_to_an_earlier_revision(cli: CommandLine) -> None:
    history = cli.read("app", "get", "llmops-staging")["status"]["history"]
    cli.run("app", "rollback", "llmops-staging", str(history[0]["id"]))
    operation = cli.read("app", "get", "llmops-staging")["status"]["operationState"]
    assert operation["syncResult"]["revision"] == history[0]["revision"]


def test_an_application_is_created_changed_and_deleted(cli: CommandLine) -> None:
    create = ("app", "create", "new", *SOURCE, "--path", f"{OVERLAY}/dev")
    assert "application 'new' created" in cli.run(*create, *HERE)
    assert "existing application spec is different" in cli.run(*create, *HERE[:-1], "else", code=20)
    assert "application 'new' updated" in cli.run(*create, *HERE[:-1], "else", "--upsert")
    cli.run("app", "set", "new", "--kustomize-image", "a=b:c", "--sync-policy", "none")
    cli.run("app", "patch", "new", "--type", "merge", "--patch", '{"metadata": {"labels": {"team": "ml"}}}')
    app = cli.read("app", "get", "new")
    assert app["spec"]["project"] == "default"  # the CLI sends an empty one
    assert app["spec"]["source"]["kustomize"]["images"] == ["a=b:c"]
    assert (app["spec"]["destination"]["namespace"], app["metadata"]["labels"]) == ("else", {"team": "ml"})
    cli.run("app", "unset", "new", "--kustomize-image", "a=b:c")
    assert not cli.read("app", "get", "new")["spec"]["source"].get("kustomize")
    cli.run("app", "delete", "new", "--yes", "--cascade=false")
    wait_until(lambda: "new" not in cli.run("app", "list", "-o", "name"))


def test_every_field_of_an_application_survives(cli: CommandLine) -> None:
    plugin = {"name": "p", "env": [{"name": "A", "value": "b"}], "parameters": [
        {"name": "list", "array": ["x"]}, {"name": "map", "map": {"k": "v"}}, {"name": "text", "string": "s"},
    ]}  # fmt: skip
    helm = {"valueFiles": ["a.yaml"], "parameters": [{"name": "a", "value": "b", "forceString": True}],
            "valuesObject": {"image": {"tag": "1", "pull": None}}, "releaseName": "r", "skipCrds": True}  # fmt: skip
    backoff = {"duration": "5s", "factor": 2, "maxDuration": "1m"}
    spec = {
        "project": "default",
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "many"},
        "sources": [
            {"repoURL": SOURCE[1], "path": "one", "targetRevision": "main", "helm": helm},
            {"repoURL": SOURCE[1], "path": "two", "targetRevision": "main", "plugin": plugin},
        ],
        "syncPolicy": {"automated": {"prune": False, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"],
                       "retry": {"limit": 3, "backoff": backoff}},
        "ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"],
                               "jqPathExpressions": [".x"], "managedFieldsManagers": ["m"]}],
        "info": [{"name": "a", "value": "b"}],
        "revisionHistoryLimit": 3,
    }  # fmt: skip
    manifest = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "many"}, "spec": spec}
    file = cli.home / "many.json"
    file.write_text(json.dumps(manifest))
    cli.run("app", "create", "-f", str(file))
    try:
        read_spec = cli.read("app", "get", "many")["spec"]
        read_spec["syncPolicy"]["automated"].setdefault("prune", False)  # argo: Go leaves out false
        helm["valuesObject"] = read_spec["sources"][0]["helm"]["valuesObject"]  # compared below
        assert read_spec == spec
        assert helm["valuesObject"]["image"]["tag"] == "1"  # type: ignore[index]
    finally:
        cli.run("app", "delete", "many", "--yes", "--cascade=false")


def test_a_project_with_roles_tokens_and_windows(cli: CommandLine) -> None:
    cli.run("proj", "create", "ml", "-d", "*,*", "-s", "*", "--description", "models")
    cli.run("proj", "role", "create", "ml", "ci")
    cli.run("proj", "role", "add-policy", "ml", "ci", "-a", "sync", "-o", "*")
    token = cli.run("proj", "role", "create-token", "ml", "ci", "--token-only").strip()
    own_view = cli.run("account", "get-user-info", "--auth-token", token)
    assert "proj:ml:ci" in own_view
    cli.run("proj", "windows", "add", "ml", "--kind", "deny", "--schedule", "0 0 * * *", "--duration", "1h",
            "--applications", "*")  # fmt: skip
    cli.run("proj", "add-destination", "ml", "https://prod.example.com", "ml")
    cli.run("proj", "allow-cluster-resource", "ml", "", "Namespace")
    project = cli.read("proj", "get", "ml")
    spec = project.get("project", project)["spec"]
    assert spec["roles"][0]["policies"] and spec["syncWindows"][0]["kind"] == "deny"
    assert {"server": "https://prod.example.com", "namespace": "ml"} in spec["destinations"]
    cli.run("proj", "delete", "ml")
    assert "not found" in cli.run("proj", "get", "ml", code=20)


def test_credentials_certificates_and_keys(cli: CommandLine) -> None:
    cli.run("repocreds", "add", "https://git.example.com/ml", "--username", "ann", "--password", "canary-password")
    listed = cli.run("repocreds", "list", "-o", "json")
    assert "https://git.example.com/ml" in listed and "canary-password" not in listed
    cli.run("repocreds", "rm", "https://git.example.com/ml")
    assert "permission denied" in cli.run("repo", "get", "https://git.example.com/a.git", code=20)


def test_an_application_set_is_created_and_deleted(cli: CommandLine) -> None:
    file = cli.home / "set.json"
    file.write_text(json.dumps(APPLICATION_SET))
    assert f"{NAMESPACE}/set" in cli.run("appset", "create", str(file))
    generators = cli.read("appset", "get", "set")["spec"]["generators"]
    assert generators[0]["matrix"]["generators"][0]["list"]["elements"] == [{"env": "dev", "replicas": 2}]
    assert "Unimplemented" in cli.run("appset", "generate", str(file), code=20)
    cli.run("appset", "delete", "set", "--yes")


def test_local_files_are_rendered_by_the_server(cli: CommandLine, running: Demo) -> None:
    folder = cli.home / "checkout"
    repository = running.where["repository"]
    subprocess.run(["git", "clone", "--quiet", repository, str(folder)], check=True, timeout=HANG_SECONDS)
    words = ("app", "diff", "llmops-dev", "--local", str(folder), "--server-side-generate", "--local-include", "*")
    assert cli.run(*words) == ""
    with (folder / OVERLAY / "dev/kustomization.yaml").open("a") as file:
        file.write("\ncommonAnnotations: {edited: locally}\n")
    assert "===== " in cli.run(*words, code=1)
    shutil.rmtree(folder / OVERLAY)
    assert "app path does not exist" in cli.run(*words, code=20)


# The connection


def test_no_command_warns_that_it_needs_grpc_web(cli: CommandLine) -> None:
    process = cli.start("app", "list", "-o", "name")
    output, errors = process.communicate(timeout=HANG_SECONDS)
    assert ("llmops-dev" in output, errors) == (True, "")


def test_grpc_web_gives_the_same(cli: CommandLine) -> None:
    web = CommandLine(cli.program, cli.address, cli.home, flags=("--plaintext", "--grpc-web"))
    assert web.run("app", "list", "-o", "name") == cli.run("app", "list", "-o", "name")


def test_a_login_tests_the_connection_without_waiting(cli: CommandLine, password: str, tmp_path: Path) -> None:
    started = time.monotonic()
    CommandLine(cli.program, cli.address, tmp_path).log_in(password)
    assert time.monotonic() - started < 15  # the CLI waits 30 seconds for an answer in HTTP/2


def test_after_a_logout_the_token_is_refused(cli: CommandLine, password: str, tmp_path: Path) -> None:
    other = CommandLine(cli.program, cli.address, tmp_path)
    other.log_in(password)
    config = (tmp_path / ".config/argocd/config").read_text()
    (token,) = (line.split(": ")[1] for line in config.splitlines() if "auth-token" in line)
    command = [str(cli.program), "logout", cli.address, *cli.flags]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "*"}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=HANG_SECONDS)
    assert "Unauthenticated" in cli.run("app", "list", "--auth-token", token, code=20)


def test_following_logs_ends_when_the_cli_is_interrupted(cli: CommandLine) -> None:
    following = cli.start("app", "logs", "llmops-dev", "--follow", "--tail", "1")
    try:
        assert following.stdout is not None
        assert "simulated" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        following.wait(HANG_SECONDS)
    finally:
        following.kill()
        following.communicate()


# The real server

MESSAGES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("/application.ApplicationService/Get", {"name": "llmops-dev"}, {"resources", "resourceVersion"}),
    ("/application.ApplicationService/GetApplicationSyncWindows", {"name": "llmops-dev"}, set()),
    ("/project.ProjectService/Get", {"name": "default"}, set()),
    ("/project.ProjectService/GetDetailedProject", {"name": "default"}, set()),
    ("/repository.RepositoryService/ListRepositories", {}, set()),
    ("/account.AccountService/ListAccounts", {}, set()),
    ("/notification.NotificationService/ListTriggers", {}, set()),
]
ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("/application.ApplicationService/Get", {"name": "missing"}),
    ("/application.ApplicationService/Delete", {"name": "missing"}),
    ("/application.ApplicationService/TerminateOperation", {"name": "llmops-dev"}),
    ("/project.ProjectService/Get", {"name": "missing"}),
    ("/cluster.ClusterService/Get", {"name": "missing"}),
    ("/applicationset.ApplicationSetService/Get", {"name": "missing"}),
    *(("/application.ApplicationService/Get", {"name": name}) for name in (".", "..", "a\0b")),
    ("/cluster.ClusterService/Get", {"id": {"type": "name", "value": "."}}),
    ("/applicationset.ApplicationSetService/Get", {"name": ".."}),
]


@pytest.fixture(scope="module")
def real_server(
    installation: Installation, running: Demo, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ArgoCD]:
    kubeconfig, folder = Path(running.where["kubeconfig"]), tmp_path_factory.mktemp("server")
    with run_argocd(installation, kubeconfig, folder, NAMESPACE, ("repo-server", "server")) as started:
        yield started


@dataclass(frozen=True)
class Answer:
    status: int
    message: str
    document: Any


def ask(port: int, method: str, body: bytes, token: str = "") -> Answer:
    answer = Client(port).ask("POST", method, body, {"Content-Type": MEDIA, "token": token})
    assert answer.code == 200
    if status := answer.headers.get("grpc-status"):
        return Answer(int(status), answer.headers.get("grpc-message", ""), None)
    messages, trailers = read_frames(answer.body)
    declared_method = find_method(method)
    assert declared_method is not None
    return Answer(int(trailers["grpc-status"]), "", decode_message(declared_method.response, messages[0]))


def without_fields(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: without_fields(item, names) for name, item in value.items() if name not in names}
    return [without_fields(item, names) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def token(cli: CommandLine) -> str:
    config = (cli.home / ".config/argocd/config").read_text()
    return next(line.split(": ")[1] for line in config.splitlines() if "auth-token" in line)


@pytest.mark.parametrize(("method", "request_document", "other_fields"), MESSAGES)
def test_messages_are_those_of_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str, method: str, request_document: dict[str, Any],
    other_fields: set[str],
) -> None:  # fmt: skip
    body = frame(encode_request(method, request_document))
    expected, actual = ask(real_server.ports["server"], method, body), ask(_port(cli), method, body, token)
    ignored = other_fields | {"managedFields"}
    assert (actual.status, expected.status) == (0, 0)
    assert without_fields(actual.document, ignored) == without_fields(expected.document, ignored)


@pytest.mark.parametrize(("method", "request_document"), ERRORS)
def test_errors_have_the_code_of_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str, method: str, request_document: dict[str, Any]
) -> None:
    body = frame(encode_request(method, request_document))
    expected, actual = ask(real_server.ports["server"], method, body), ask(_port(cli), method, body, token)
    assert actual.status == expected.status != 0, (actual, expected)


@pytest.mark.parametrize("body", [b"", b"\0\0", frame(b"\xff"), frame(b"", 1)])
def test_malformed_calls_have_the_code_of_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str, body: bytes
) -> None:
    method = "/application.ApplicationService/Get"
    expected, actual = ask(real_server.ports["server"], method, body), ask(_port(cli), method, body, token)
    assert actual.status == expected.status == 13


@pytest.mark.parametrize(("method", "data"), [
    ("/application.ApplicationService/Rollback", b"\x0a\x0allmops-dev"),
    ("/application.ApplicationService/Rollback", b"\x10\x00"),
    ("/application.ApplicationService/Patch", b"\x0a\x0allmops-dev\x12\x02{}"),
    ("/application.ApplicationService/RunResourceActionV2", b"\x0a\x0allmops-dev\x4a\x03\x0a\x01a"),
])  # fmt: skip
def test_a_missing_required_field_has_the_error_of_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str, method: str, data: bytes
) -> None:
    body = frame(data)
    expected, actual = ask(real_server.ports["server"], method, body), ask(_port(cli), method, body, token)
    assert (actual.status, unquote(actual.message)) == (expected.status, unquote(expected.message))
    assert actual.status == 13


def test_a_percent_encoded_path_is_decoded_as_by_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str
) -> None:
    path, body = "/application%2EApplicationService/List", frame(b"")
    headers = {"Content-Type": MEDIA, "token": token}
    for port in (real_server.ports["server"], _port(cli)):
        answer = Client(port).ask("POST", path, body, headers)
        assert read_frames(answer.body)[1]["grpc-status"] == "0", port


@pytest.mark.parametrize("query", [
    {"id": {"type": "name", "value": "in-cluster"}}, {"id": {"type": "name_escaped", "value": "in%2dcluster"}},
    {"id": {"type": "name", "value": "in%2dcluster"}}, {"id": {"type": "server", "value": "https://h"}},
    {"id": {"type": "name", "value": ""}}, {"id": {"type": "name", "value": "in-cluster"}, "name": "other"},
    {"name": "in-cluster"}, {"server": "https://kubernetes.default.svc"}, {"name": "other"},
])  # fmt: skip
def test_clusters_are_filtered_as_by_the_real_server(
    cli: CommandLine, real_server: ArgoCD, token: str, query: dict[str, Any]
) -> None:
    method = "/cluster.ClusterService/List"
    body = frame(encode_request(method, query))
    expected, actual = ask(real_server.ports["server"], method, body), ask(_port(cli), method, body, token)
    assert (actual.status, expected.status) == (0, 0)
    names = [[item["name"] for item in answer.document["items"] or ()] for answer in (expected, actual)]
    assert names[0] == names[1], (query, names)


def _port(cli: CommandLine) -> int:
    return int(cli.address.rpartition(":")[2])
