"""The CRDs bundled with argosy, used with kubectl: columns, short names, validation, apply and explain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.kube.objects import Manifest, dump_yaml_documents, read_manifests
from argosy.kube.schema.bundled_crds import load_definitions
from support.clusters import KUBECTL, Sandbox, kubectl, sandbox, until_served

DATA = Path(__file__).parents[1] / "data" / "definitions"
EXAMPLES = [
    manifest for file in sorted(DATA.glob("*.yaml")) for manifest in read_manifests(file.read_text(), where=file.name)
]
SHORT_NAMES = ["app", "tm", "csv", "sub", "og", "is", "bc", "dsc", "smcp", "es", "tr", "el", "appproj"]
pytestmark = pytest.mark.tier("all")  # `make test` has a test of each CRD on a server, and one list on the demo


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with all bundled CRDs and their example objects."""
    if not KUBECTL.exists():
        pytest.skip(f"kubectl: there is none at {KUBECTL} (make install)")
    with sandbox(tmp_path_factory.mktemp("kinds") / "data", "--port", "0") as started:
        run(started, "create", "-f", "-", input=dump_yaml_documents(load_definitions()))
        until_served(started.kubeconfig, "--all")
        run(started, "apply", "-f", "-", input=dump_yaml_documents(by_people()))
        written = [example for example in EXAMPLES if example["metadata"]["name"] in ("granite", "every-field")]
        run(started, "replace", "--subresource=status", "-f", "-", input=dump_yaml_documents(written))
        yield started


def by_people() -> list[Manifest]:
    """Return the examples without status, except Applications and AppProjects, whose status is no subresource."""
    whole = ("Application", "AppProject")
    return [
        {key: example[key] for key in example if key != "status" or example["kind"] in whole} for example in EXAMPLES
    ]


def run(started: Sandbox, *arguments: str, input: str | None = None) -> str:
    done = kubectl(started.kubeconfig, *arguments, input=input)
    assert done.code == 0, done.err
    return done.out


def table(started: Sandbox, *arguments: str) -> list[str]:
    return run(started, "get", *arguments).splitlines()


def test_inference_service_columns_show_url_and_traffic(furnished: Sandbox) -> None:
    header, row = table(furnished, "isvc", "granite")
    assert header.split() == [
        "NAME", "URL", "READY", "PREV", "LATEST", "PREVROLLEDOUTREVISION", "LATESTREADYREVISION", "AGE",
    ]  # fmt: skip
    assert row.split()[:-1] == [
        "granite", "https://granite.example.org", "True", "90", "10", "granite-predictor-00001",
        "granite-predictor-00002",
    ]  # fmt: skip


def test_notebook_job_columns_show_phase_and_notebook(furnished: Sandbox) -> None:
    header, row = table(furnished, "nvj")
    assert header.split() == ["NAME", "PHASE", "NOTEBOOK", "AGE"]
    assert row.split()[:-1] == ["every-field", "Succeeded", "notebooks/train.ipynb"]
    assert table(furnished, "nvjob", "-o", "wide")[0].split() == ["NAME", "PHASE", "NOTEBOOK", "AGE", "MESSAGE"]


def test_application_columns_show_sync_and_health(furnished: Sandbox) -> None:
    header, row = table(furnished, "applications.argoproj.io", "llmops-dev")
    assert [column.strip() for column in header.split("  ") if column] == ["NAME", "SYNC STATUS", "HEALTH STATUS"]
    assert row.split() == ["llmops-dev", "Synced", "Healthy"]


def test_route_columns_match_openshift(furnished: Sandbox) -> None:
    header, row = table(furnished, "routes")
    assert header.split() == ["NAME", "HOST/PORT", "PATH", "SERVICES", "PORT", "TERMINATION", "WILDCARD"]
    assert row.split()[1:] == ["gitops.apps.example.org", "/", "openshift-gitops-server", "https", "reencrypt", "None"]


@pytest.mark.parametrize("kind", SHORT_NAMES)
def test_a_short_name_finds_its_kind(furnished: Sandbox, kind: str) -> None:
    assert len(table(furnished, kind)) > 1


def test_apply_rejects_an_unknown_field(furnished: Sandbox) -> None:
    text = (DATA / "mlops.yaml").read_text().replace("comparisonConfig:", "comparisonsConfig:").replace("every-", "no-")
    done = kubectl(furnished.kubeconfig, "apply", "-f", "-", input=text)
    assert done.code == 1
    assert 'unknown field "spec.comparisonsConfig"' in done.err
    assert kubectl(furnished.kubeconfig, "get", "nvj", "no-field").code == 1


def test_the_second_apply_changes_nothing(furnished: Sandbox) -> None:
    # As with the original CRD, the server adds defaults inside lists of an ExternalSecret, and kubectl replaces lists.
    again = [manifest for manifest in by_people() if manifest["kind"] != "ExternalSecret"]
    lines = run(furnished, "apply", "-f", "-", input=dump_yaml_documents(again)).splitlines()
    assert len(lines) == len(again)
    assert [line for line in lines if not line.endswith(" unchanged")] == []


def test_kubectl_explain_describes_a_field(furnished: Sandbox) -> None:
    output = run(furnished, "explain", "applications.argoproj.io.spec.syncPolicy.automated.selfHeal")
    assert "revert changes made in the cluster" in output
