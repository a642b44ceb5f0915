"""The scripts of `llmops-via-argocd` on OpenShift GitOps, whose operator is simulated: Argo CD and argosy deliver."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from argosy.gitops.application.url_credential_detection import PLACEHOLDER_URL
from support.argocd.comparison import Difference, find_differences, normalize_text
from support.argocd.known_differences import find_unexplained
from support.argocd.pair import Pair, Side, run_pair
from support.argocd.programs import Installation
from support.clusters import ARGOSY, environment
from support.deadlines import HANG_SECONDS
from support.engine import Repository
from support.paths import ROOT

pytestmark = pytest.mark.tier("argocd")

# By name, with the namespaces that they deliver to.
APPLICATIONS: Final = {
    "llmops-dev": "llmops-dev",
    "llmops-staging": "llmops-staging",
    "llmops-production": "llmops-prod",
}
KINDS: Final = {
    "Secret": "/api/v1/secrets",
    "serving.kserve.io/InferenceService": "/apis/serving.kserve.io/v1beta1/inferenceservices",
    "serving.kserve.io/ServingRuntime": "/apis/serving.kserve.io/v1alpha1/servingruntimes",
}


class OpenShiftGitOps:
    """The folder `llmops-via-argocd` as its reader copies it, and two clusters with the operator."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.repository = Repository(folder)
        self.folder = folder / "llmops-via-argocd"
        shutil.copytree(ROOT / "llmops-via-argocd", self.folder)
        for file in (self.folder / "argocd-apps").glob("*.yaml"):
            text = file.read_text()
            assert PLACEHOLDER_URL in text
            file.write_text(text.replace(PLACEHOLDER_URL, self.repository.url))
        self.repository.push({})

    def run_script(self, path: str, *arguments: str, code: int = 0) -> None:
        """Run a script on both clusters; it must end alike and have done the same steps."""
        left, right = (self._run_on(side, path, arguments, code) for side in self.pair.sides)
        differences = list(find_differences(path, left, right))
        assert not differences, "\n".join(map(str, differences))

    def _run_on(self, side: Side, path: str, arguments: Sequence[str], code: int) -> list[str]:
        home = self.pair.folder / f"home-of-{side.name}"
        home.mkdir(exist_ok=True)
        settings = {"ARGOSY": str(ARGOSY), "KUBECONFIG": str(side.server.kubeconfig)}
        done = subprocess.run(
            [str(self.folder / path), *arguments], env=environment(home) | settings, capture_output=True, text=True,
            timeout=HANG_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, f"{side.name}: {path}: {done.returncode}\n{done.stdout}{done.stderr}"
        return [normalize_text(line) for line in done.stdout.splitlines() if line.lstrip().startswith(("✓", "✗"))]

    def check(self) -> None:
        self.pair.wait_until_quiet(list(APPLICATIONS))
        unexplained: list[Difference] = []
        for name, namespace in APPLICATIONS.items():
            differences = [*self.pair.compare_application(name), *self.pair.compare_namespace(namespace, KINDS)]
            unexplained += find_unexplained(f"examples/{name}", differences)
        assert not unexplained, "\n".join(map(str, unexplained))

    def list_health(self) -> list[dict[str, str]]:
        """Return the health of the three Applications on both clusters."""
        listed = (side.list_applications() for side in self.pair.sides)
        return [{name: apps[name]["status"]["health"]["status"] for name in APPLICATIONS} for apps in listed]


@pytest.fixture
def openshift(installation: Installation, tmp_path: Path) -> Iterator[OpenShiftGitOps]:
    addons = "argocd_operator,simulators"
    with run_pair(installation, tmp_path / "pair", control="openshift-gitops", addons=addons) as pair:
        yield OpenShiftGitOps(pair, tmp_path / "repository")


def test_scripts_set_up_the_same_delivery_and_health_checks(openshift: OpenShiftGitOps) -> None:
    openshift.run_script("setup_scripts/setup-argocd.sh")
    openshift.run_script("setup_scripts/apply-argocd-apps.sh")
    openshift.check()
    for name in ("llmops-staging", "llmops-production"):
        openshift.pair.sync(name)
    openshift.check()

    openshift.run_script("argocd-custom-healthcheck/verify-health-check.sh", code=1)
    openshift.run_script("argocd-custom-healthcheck/apply-health-check-via-cr.sh", "--force")
    for name in APPLICATIONS:
        openshift.pair.refresh(name)
    openshift.check()
    assert openshift.list_health() == [dict.fromkeys(APPLICATIONS, "Healthy")] * 2
    openshift.run_script("argocd-custom-healthcheck/verify-health-check.sh")
