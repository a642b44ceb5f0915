"""The commands `argosy account`, `argosy admin` and `argosy open`, against a cluster over a socket."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.features.serve import running_server_login_urls
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.caller import BadCredential, RequestCredentials
from argosy.web.auth.login_codes import LoginCodes
from support.app_commands import Scene
from support.app_commands import scene as opened
from support.engine import CONTROL
from support.identities import Glance

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    settings = {"accounts.ci": "apiKey", "accounts.ann": "apiKey, login", "accounts.old": "login"}
    settings["accounts.old.enabled"] = "false"
    async with opened(tmp_path_factory.mktemp("accounts"), settings) as opened_scene:
        rules = "p, ci, applications, sync, ml/*, allow\np, broken"
        await opened_scene.cluster.create({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-rbac-cm", "namespace": CONTROL},
            "data": {"policy.csv": rules.partition("\n")[0]},
        })  # fmt: skip
        yield opened_scene


async def server(scene: Scene) -> Authenticator:
    glance = Glance(scene.cluster)
    authenticator = Authenticator(scene.cluster, glance, CONTROL, min_login_seconds=0.0)
    await authenticator.prepare()
    await glance.look()
    return authenticator


@pytest.mark.tier("all")
async def test_account_list_and_get_match_argocd_output(scene: Scene) -> None:
    assert (await scene.argosy("account", "list")).out.splitlines() == [
        "NAME   ENABLED  CAPABILITIES",
        "admin  true     login",
        "ann    true     apiKey, login",
        "ci     true     apiKey",
        "old    false    login",
    ]
    assert (await scene.argosy("account", "list", "-o", "name")).out.split() == ["admin", "ann", "ci", "old"]
    account = json.loads((await scene.argosy("account", "get", "-a", "ci", "-o", "json")).out)
    assert account == {"name": "ci", "enabled": True, "capabilities": ["apiKey"]}
    assert "Tokens:\nNONE" in (await scene.argosy("account", "get")).out
    assert (await scene.argosy("account", "get", "-a", "eve")).code == 2


async def test_generated_token_is_valid_until_deleted(scene: Scene) -> None:
    identities = await server(scene)
    result = await scene.argosy(
        "account", "generate-token", "--account", "ci", "--expires-in", "1h", "--id", "pipeline"
    )
    assert result.code == 0
    caller = await identities.identify(RequestCredentials(bearer=result.out.strip()))
    assert caller is not None
    assert (caller.name, caller.id) == ("ci", "pipeline")
    output = (await scene.argosy("account", "get", "-a", "ci")).out
    assert re.search(r"^ID +ISSUED AT +EXPIRING AT\npipeline +\d{4}-\S+Z +\d{4}-\S+Z$", output, re.MULTILINE)
    assert result.out.strip() not in output
    assert (await scene.argosy("account", "delete-token", "pipeline", "-a", "ci")).code == 0
    with pytest.raises(BadCredential):
        await (await server(scene)).identify(RequestCredentials(bearer=result.out.strip()))
    refused = await scene.argosy("account", "generate-token")
    assert refused.code == 2
    assert "does not have apiKey capability" in refused.err
    assert "is not a duration" in (await scene.argosy("account", "generate-token", "-a", "ci", "-e", "soon")).err


async def test_can_i_answers_yes_or_no(scene: Scene) -> None:
    for account, words, answer in (
        ("ci", "sync applications ml/a", "yes"),
        ("ci", "delete applications ml/a", "no"),
        ("admin", "delete applications ml/a", "yes"),
        ("role:admin", "delete applications ml/a", "no"),
    ):
        result = await scene.argosy("account", "can-i", *words.split(), "--account", account)
        assert (result.code, result.out.strip()) == (0, answer)


async def test_initial_password_is_printed_and_update_password_reads_stdin(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = await server(scene)
    result = await scene.argosy("admin", "initial-password")
    first = result.out.strip()
    assert await identities.login("admin", first)
    assert "update-password" in result.err
    wrong = await scene.argosy("account", "update-password", "--current-password", "x", "--new-password", "a new one!")
    assert wrong.code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("another one!\n"))
    assert (await scene.argosy("account", "update-password")).out == "Password updated\n"
    assert await (await server(scene)).login("admin", "another one!")
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert (
        "does not match passwordPattern" in (await scene.argosy("account", "update-password", "--account", "ann")).err
    )


async def test_argocd_program_name_accepts_account_list(scene: Scene) -> None:
    result = await scene.argosy("account", "list", "-o", "name", program="argocd")
    assert result.out.split() == ["admin", "ann", "ci", "old"]


def test_open_creates_a_login_code_for_the_running_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.main import main

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["open", "--no-browser"]) == 2
    folder = tmp_path / "argosy" / "page"
    with running_server_login_urls.write_state_file(folder, "http://127.0.0.1:9000"):
        url, state_folder = running_server_login_urls.find_login_url()
        assert url.startswith("http://127.0.0.1:9000/enter?code=")
        assert LoginCodes(state_folder).redeem(url.partition("=")[2]) == "admin"
        assert main(["open", "--no-browser", "--port", "9001"]) == 2
    (folder / "served-999999999.json").write_text('{"url": "http://127.0.0.1:1"}')
    assert running_server_login_urls.list_running_servers() == []
