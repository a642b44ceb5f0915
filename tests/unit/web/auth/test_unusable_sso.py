"""An unusable oidc.config is logged at startup and when it changes, and reported by doctor."""

from __future__ import annotations

import pytest

from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.installation_state import read_installation
from support.identities import NAMESPACE, Glance, Room

pytestmark = pytest.mark.anyio
USABLE = "issuer: https://login.example.com\nclientID: argosy\n"
UNUSABLE = {
    "issuer: {": "oidc.config:1: is not valid YAML",
    "issuer: https://[idp\nclientID: argosy": "issuer must begin with https://",
    USABLE + "clientSecret: *sup3rsecret": "oidc.config:3: is not valid YAML; correct this line",
    "- a list": "is not a map",
    "clientID: argosy": "issuer must begin with https://",
    "issuer: https://login.example.com": "clientID is missing",
    USABLE + "clientSecret: $no.such.key": "clientSecret refers to a missing Secret key",
    USABLE + "clientSecret: $another:key": "clientSecret refers to a missing Secret key",
    USABLE + "enableUserInfoGroups: true": "enableUserInfoGroups needs userInfoPath",
}


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.message.startswith("SSO")]


@pytest.mark.parametrize("text", UNUSABLE)
async def test_startup_logs_an_unusable_oidc_config_once(
    room: Room, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    await room.settings(oidc__config=text)
    caplog.clear()
    glance = Glance(room.cluster)
    await glance.look()
    identities = room.server(glance)
    await identities.prepare()
    (line,) = _lines(caplog)
    assert line.startswith("SSO is not usable: argocd-cm: oidc.config")
    assert UNUSABLE[text] in line
    await room.settings(url="https://argosy.example")  # an unrelated change
    await glance.look()
    assert _lines(caplog) == [line]


async def test_each_oidc_config_fault_and_its_recovery_log_one_line(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for text in (USABLE, "issuer: https://login.example.com", USABLE + "clientSecret: $own.key"):
        await room.settings(oidc__config=text)
    assert [line.partition(";")[0] for line in _lines(caplog)] == [
        "SSO is not usable: argocd-cm: oidc.config: clientID is missing",
        "SSO is not usable: argocd-cm: oidc.config: clientSecret refers to a missing Secret key",
    ]
    caplog.clear()
    await room.secrets(own__key="a value that nobody may see")
    assert _lines(caplog) == ["SSO: oidc.config in argocd-cm is valid again"]
    assert "a value that nobody may see" not in caplog.text


@pytest.mark.parametrize("text", UNUSABLE)
async def test_doctor_reports_the_same_oidc_config_fault(room: Room, text: str) -> None:
    await room.settings(oidc__config=text)
    settings = await read_installation(OptionalReads(room.cluster), NAMESPACE)
    assert UNUSABLE[text] in settings.view.sso_fault


async def test_doctor_reads_the_secrets_that_oidc_config_refers_to(room: Room) -> None:
    await room.settings(oidc__config=USABLE + "clientSecret: $another:key")
    metadata = {"name": "another", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "argocd"}}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "eA=="}})
    settings = await read_installation(OptionalReads(room.cluster), NAMESPACE)
    assert settings.view.sso_fault == ""
