"""Tests log lines: their format, their context fields and the masking of secrets."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.gitops.engine.logging_setup import LogLineFormatter, QuotableSecrets, mask_log_output
from argosy.kube.controller.log_context import add_log_fields, build_object_field, get_log_fields, with_log_fields
from argosy.kube.resource_key import ResourceKey

APP = ResourceKey("argoproj.io", "Application", "argocd", "web")
LOG = logging.getLogger("argosy.gitops.reconciler.application_controller")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.data: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(LogLineFormatter("text").format(record))
        self.data.append(json.loads(LogLineFormatter("json").format(record)))


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, logger = Kept(), logging.getLogger("argosy")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_log_line_has_application_project_and_revision_fields(kept: Kept) -> None:
    with with_log_fields(member="host_1"), with_log_fields(**build_object_field(APP)):
        add_log_fields(project="default", revision="")
        add_log_fields(revision="4c2e271")
        LOG.warning('it "said" %s', "so\nand so")
    LOG.info("of nobody")
    (line, other), (data, _) = kept.text, kept.data
    assert re.fullmatch(
        r'time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=warning msg="it \\"said\\" so\\nand so" '
        "application=argocd/web member=host_1 project=default revision=4c2e271",
        line,
    )
    assert other.endswith('level=info msg="of nobody"')
    assert {**data, "time": ""} == {
        "time": "", "level": "warning", "msg": 'it "said" so\nand so', "application": "argocd/web",
        "member": "host_1", "project": "default", "revision": "4c2e271",
    }  # fmt: skip


async def test_log_fields_of_one_task_do_not_leak_into_another(kept: Kept) -> None:
    async def at_work(name: str) -> None:
        with with_log_fields(**build_object_field(APP._replace(name=name))):
            await asyncio.sleep(0)
            await asyncio.to_thread(LOG.info, "from a thread of %s", name)
            add_log_fields(revision=name)
            LOG.info("of %s", name)

    await asyncio.gather(*(at_work(name) for name in "abc"))
    for entry in kept.data:
        name = entry["msg"][-1]
        assert entry["application"] == f"argocd/{name}" and entry.get("revision", name) == name
    assert len(kept.data) == 6 and not get_log_fields()


def test_traceback_is_part_of_the_same_line(kept: Kept) -> None:
    try:
        raise ValueError("unexpected")
    except ValueError:
        LOG.exception("again")
    assert "\n" not in kept.text[0]
    assert kept.data[0]["level"] == "error" and kept.data[0]["stack"].endswith("ValueError: unexpected")


def test_audit_line_has_its_fields_at_top_level(kept: Kept) -> None:
    document = {"who": "ann", "how": "session", "what": "POST /api/v1/applications", "object": "p/web", "code": 200}
    logging.getLogger("argosy.audit").info("%s", json.dumps(document))
    assert kept.data[0] == {**document, **{name: kept.data[0][name] for name in ("time", "level", "msg")}}
    assert kept.data[0]["msg"] == "ann: POST /api/v1/applications"


def secret(namespace: str, value: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "s", "namespace": namespace, "annotations": annotations, "resourceVersion": "1", "uid": value}
    data = {"password": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


PROJECT = {
    "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "ml", "namespace": "argocd"},
    "spec": {"destinations": [{"server": "*", "namespace": "web"}]},
}  # fmt: skip
COMMIT = "4c2e27100f5d4c0fb1c6a4f3b3f0f2a7b9d0c1e2"


def test_application_log_line_is_masked_with_its_own_secrets_only(kept: Kept) -> None:
    app = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"project": "ml", "destination": {"name": "east", "namespace": "web"}},
        "status": {"sync": {"revision": "own-commit-of-web"}},
    }  # fmt: skip
    manifests = {APP: app, ResourceKey("argoproj.io", "AppProject", "argocd", "ml"): PROJECT}
    quotable = QuotableSecrets(
        "argocd", lambda manifest: "tracked" in manifest["metadata"]["annotations"], manifests.get
    )
    with mask_log_output(quotable.mask):
        quotable.on_change(None, secret("other", COMMIT, tracked="yes"))
        quotable.on_change(None, secret("argocd", "of-the-settings-1"))
        quotable.on_change(None, secret("web", "of-its-cluster-2", tracked="yes"), "east")
        quotable.on_change(None, secret("web", "own-commit-of-web", tracked="yes"))
        with with_log_fields(**build_object_field(APP)):
            LOG.info("synced to %s, before that to own-commit-of-web", COMMIT)
            LOG.info("refused: of-its-cluster-2, of-the-settings-1")
        LOG.info("of no Application: %s of-its-cluster-2", COMMIT)
    assert kept.data[0]["msg"] == f"synced to {COMMIT}, before that to own-commit-of-web"
    assert kept.data[1]["msg"] == "refused: ++++++++, ++++++++"
    assert kept.data[2]["msg"] == "of no Application: ++++++++ ++++++++"


def test_log_lines_never_contain_secret_values_the_engine_reads(kept: Kept) -> None:
    quotable = QuotableSecrets("argocd", lambda manifest: "tracked" in manifest["metadata"]["annotations"])
    with mask_log_output(quotable.mask):
        quotable.on_change(None, secret("argocd", "of-the-settings-1"))
        quotable.on_change(None, secret("web", "of-an-application-2", tracked="yes"))
        quotable.on_change(None, secret("web", "of-another-cluster-3", tracked="yes"), "east")
        quotable.on_change(None, secret("argocd", "of-nobody-there-4"), "east")
        url = "https://bot:in-an-address-5@git.example.com/r"
        app = {"kind": "Application", "apiVersion": "argoproj.io/v1alpha1",
               "metadata": {"name": "web", "namespace": "argocd"}, "spec": {"source": {"repoURL": url}}}  # fmt: skip
        quotable.on_change(None, app)
        for value in ("of-the-settings-1", "of-an-application-2", "of-another-cluster-3", "in-an-address-5"):
            LOG.info("the server said: Invalid value: %s", f'"{value}"')
            LOG.info("%s", base64.b64encode(value.encode()).decode())
            assert value not in str(kept.data), value
            assert base64.b64encode(value.encode()).decode() not in str(kept.data)
        LOG.info("of-nobody-there-4")
        assert "of-nobody-there-4" in str(kept.data)
        quotable.on_change(secret("web", "of-an-application-2", tracked="yes"), None)
        LOG.info("of-an-application-2 is no secret any more; of-another-cluster-3 is")
    assert "of-an-application-2" in kept.text[-1] and "of-another-cluster-3" not in kept.text[-1]
