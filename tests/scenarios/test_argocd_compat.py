"""argosy called as `argocd`: scripts written for the argocd CLI keep working."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from argosy import __version__
from argosy.features.argocd_cli.cli import translate_arguments
from argosy.kube.resource_key import ResourceKey
from argosy.main import main
from support.app_commands import HANG, Said, Scene, scene
from support.argocd_answers import Command, differences, play, recorded
from support.engine import CONTROL, config_map

SERVER = "https://kubernetes.default.svc"
ARGOCD_CM = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
COMMANDS = recorded()
Played = dict[int, tuple[Command, Said, dict[str, str]]]
# The commands that `make test` runs: each verb once or twice, and none that needs an earlier command.
SHORT = frozenset({0, 1, 2, 5, 6, 13, 14, 17, 24, 25, 30, 33, 36, 39, 50, 63, 79, 80, 81, 90, 92, 95, 97, 98, 101, 103})
NUMBERS = [
    pytest.param(number, id=f"{number}: {command.line[:60]}", marks=() if number in SHORT else pytest.mark.tier("all"))
    for number, command in enumerate(COMMANDS)
]


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Run the recorded commands once, in order, in one installation: all of them, or those of `make test`."""
    folder = tmp_path_factory.mktemp("argocd")
    here = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    numbers = sorted(SHORT) if {item.callspec.params["number"] for item in here} <= SHORT else range(len(COMMANDS))

    async def run() -> Played:
        async with scene(folder) as desk:
            desk.repository.push({"app/settings.yaml": config_map(a="one")})
            answers = await play(desk, folder, [COMMANDS[number] for number in numbers])
            return dict(zip(numbers, answers, strict=True))

    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    try:
        return anyio.run(run)
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def test_at_least_forty_commands_are_recorded() -> None:
    assert len({recorded_command.line for recorded_command in COMMANDS}) >= 40


@pytest.mark.parametrize("number", NUMBERS)
def test_command_gives_the_recorded_result(played: Played, number: int) -> None:
    command, result, variables = played[number]
    assert differences(command, result, variables) == [], command.line


@pytest.mark.parametrize("number", NUMBERS)
def test_comparison_with_the_record_detects_a_wrong_exit_code_and_output(played: Played, number: int) -> None:
    command, result, variables = played[number]
    assert differences(command, result._replace(code=result.code + 1), variables)
    if command.out is not None and command.out.strip().removesuffix("...").strip() != "":
        assert differences(command, result._replace(out="nonsense\n"), variables), "any output fits"
    if command.out == "":
        assert differences(command, result._replace(out="something\n"), variables)


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:  # type: ignore[misc]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as opened_scene:
        yield opened_scene


@pytest.mark.tier("all")
@pytest.mark.anyio
async def test_failed_sync_and_unknown_application_exit_20(desk: Scene) -> None:
    desk.repository.push({"app/wrong.yaml": {**config_map("wrong"), "data": {"not a key!": "x"}}})
    url = desk.repository.url
    words = f"app create models --repo {url} --path app --dest-server {SERVER} --dest-namespace ml"
    assert (await desk.argosy(*words.split(), program="argocd")).code == 0
    assert (await desk.argosy("app", "sync", "models", "--timeout", HANG, program="argocd")).code == 20
    assert (await desk.argosy("--argocd-compat", "app", "get", "nothing")).code == 20


@pytest.mark.tier("all")
@pytest.mark.anyio
async def test_edit_applies_changes_and_keeps_a_refused_draft(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one")})
    await desk.deliver()
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/main/HEAD/")
    result = await desk.argosy("app", "edit", "models")
    assert result.code == 0 and "updated" in result.err, result.err
    assert (await desk.app())["spec"]["source"]["targetRevision"] == "HEAD"
    assert "unchanged" in (await desk.argosy("app", "edit", "models")).err
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/repoURL/repo/")
    edit_result = await desk.argosy("app", "edit", "models")
    draft_path = Path(edit_result.err.partition("is kept in ")[2].split()[0])
    assert edit_result.code == 2 and "repo:" in draft_path.read_text()
    draft_path.unlink()
    monkeypatch.setenv("KUBE_EDITOR", "no-such-editor")
    assert (await desk.argosy("proj", "edit", "default")).code == 2
    monkeypatch.setenv("KUBE_EDITOR", "sed -i 1idescription:\\ all")
    project_edit = await desk.argosy("proj", "edit", "default")
    assert project_edit.code == 0, project_edit.err
    assert "Description:                 all" in (await desk.argosy("proj", "get", "default")).out


def said_as_argocd(capsys: pytest.CaptureFixture[str], line: str) -> Said:
    code = main(line.split(), program="argocd")
    return Said(code, *capsys.readouterr())


def test_version_supports_short_client_and_json_output(capsys: pytest.CaptureFixture[str]) -> None:
    version = f"v{__version__}+argosy"
    assert said_as_argocd(capsys, "version --client --short").out == f"argocd: {version}\n"
    lines = said_as_argocd(capsys, "version --client").out.splitlines()
    assert lines[0] == f"argocd: {version}" and all(line.startswith("  ") for line in lines[1:])
    assert json.loads(said_as_argocd(capsys, "version --client -o json").out)["client"]["Version"] == version
    assert json.loads(said_as_argocd(capsys, "version --short -ojson").out)["client"] == {"argocd": version}
    assert "argocd-server: " in said_as_argocd(capsys, "version").out
    assert said_as_argocd(capsys, "version -o nonsense").code == 1


def test_login_and_gpg_print_what_to_do_without_an_argocd_server(capsys: pytest.CaptureFixture[str]) -> None:
    result = said_as_argocd(capsys, "login argocd.example --core --username admin --password secret --sso")
    assert result.code == 0 and "no login needed" in result.err and "secret" not in result.err
    assert said_as_argocd(capsys, "logout argocd.example").code == 0
    command_result = said_as_argocd(capsys, "gpg list")
    assert command_result.code == 1 and "argocd-gpg-keys-cm" in command_result.err
    assert "app\n" in said_as_argocd(capsys, "--help").out


def test_login_without_a_kubeconfig_exits_20(capsys: pytest.CaptureFixture[str]) -> None:
    result = said_as_argocd(capsys, "login argocd.example --username admin --password secret")
    assert result.code == 20 and "no kubeconfig" in result.err and "secret" not in result.err


def test_unparsable_argocd_opts_variable_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOCD_OPTS", "--server 'a")
    result = said_as_argocd(capsys, "app list")
    assert result.code == 20 and "ARGOCD_OPTS" in result.err


@pytest.mark.anyio
async def test_server_of_another_installation_is_refused_in_flags_and_environment(
    desk: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one")})
    await desk.deliver()
    before = await desk.app()

    async def argocd(line: str) -> Said:
        return await desk.argosy(*line.split(), program="argocd")

    for line in (
        "login prod.example",
        "--server prod.example app delete models -y",
        "app delete models -y --server=prod.example:443",
        "app delete models -y --argocd-context prod.example",
        "proj delete default --server prod.example",
    ):
        result = await argocd(line)
        assert result.code == 20, line
        assert "prod.example" in result.err and "is not a server of context plane (https://127.0.0.1:" in result.err
    for name, value in (("ARGOCD_SERVER", "prod.example"), ("ARGOCD_OPTS", "--grpc-web --server prod.example")):
        monkeypatch.setenv(name, value)
        assert (await argocd("app delete models -y")).code == 20, name
        assert (await argocd("--core app get models")).code == 0, name
        monkeypatch.delenv(name)
    assert (await desk.app())["metadata"]["uid"] == before["metadata"]["uid"]

    await desk.cluster.patch(ARGOCD_CM, {"data": {"url": "https://prod.example"}})
    own = ("login prod.example --sso", "app get models --server prod.example", "--server prod.example:443 proj list")
    for line in own:
        assert (await argocd(line)).code == 0, line
    assert "whose servers are https://prod.example\n" in (await argocd("login dev.example")).err


CONFIG = """\
contexts:
- {name: prod, server: prod.example, user: prod}
- {name: core, server: kubernetes, user: kubernetes}
- {name: here, server: here.example, user: here}
current-context: prod
servers:
- {server: prod.example}
- {server: kubernetes, core: true}
users:
- {name: prod, auth-token: hidden-token}
"""


@pytest.mark.anyio
async def test_other_server_in_the_argocd_config_file_is_refused(
    desk: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one")})
    await desk.deliver()
    before = await desk.app()
    (tmp_path / "config").write_text(CONFIG)

    async def argocd(line: str) -> Said:
        return await desk.argosy(*line.split(), program="argocd")

    result = await argocd(f"app delete models -y --config {tmp_path / 'config'}")
    assert result.code == 20 and "hidden-token" not in result.err
    assert f"prod.example, named by the context in {tmp_path / 'config'}, is not a server of context" in result.err
    assert "next: add --core to use that cluster, choose another cluster with --kube-context" in result.err
    monkeypatch.setenv("ARGOCD_CONFIG_DIR", str(tmp_path))
    for line in ("app get models", "app delete models -y", "proj list", "app list --argocd-context here"):
        assert (await argocd(line)).code == 20, line
    assert (await desk.app())["metadata"]["uid"] == before["metadata"]["uid"]
    for line in ("app get models --core", "app get models --argocd-context core", "logout prod.example", "context"):
        assert (await argocd(line)).code == 0, line

    await desk.cluster.patch(ARGOCD_CM, {"data": {"url": "https://here.example"}})
    for line in ("login here.example", "app get models --argocd-context here", "app get models --server here.example"):
        assert (await argocd(line)).code == 0, line
    (tmp_path / "config").write_text("[]")
    assert "not an argocd configuration" in (await argocd("app list")).err


@pytest.mark.anyio
async def test_write_after_a_refused_login_prints_its_target_context(desk: Scene) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one")})
    await desk.deliver()
    assert (await desk.argosy("login", "prod.example", program="argocd")).code == 20
    result = await desk.argosy("app", "set", "models", "--revision", "main", program="argocd")
    assert result.code == 0 and result.err.startswith("target: context plane (https://127.0.0.1:"), result.err


def test_translate_arguments_drops_server_flags_in_any_position() -> None:
    line = "--server a.example --core --kube-context dev apps get models --header x=y -H z --out json --insecure=true"
    assert translate_arguments(line.split()) == ["app", "get", "models", "--output", "json", "--context", "dev"]
    assert translate_arguments(["app", "list", "--namespace", "argocd"]) == ["app", "list", "--app-namespace", "argocd"]
    arguments = ["app", "logs", "models", "--namespace=ml"]
    assert translate_arguments(arguments) == arguments
