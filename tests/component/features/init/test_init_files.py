"""Files of a repository that `argosy init` creates, for any name and URL."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.errors import UserError
from argosy.features.init.template_files import NewRepository
from argosy.gitops.delivery_file.reader import read_delivery_file
from support.deadlines import HANG_SECONDS
from support.paths import ROOT

TREE = ROOT / "llmops-via-argocd"
FRAUD = NewRepository("fraud", "https://github.com/acme/fraud.git")


def texts(repository: NewRepository) -> dict[str, str]:
    return {file.path: file.content.decode() for file in repository.build_files()}


def documents(repository: NewRepository, path: str) -> Any:
    return yaml.safe_load(texts(repository)[path])


def test_templates_match_the_llmops_tree() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/copy_templates.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_new_repository_has_the_expected_files() -> None:
    paths = texts(FRAUD).keys()
    for expected_path in (
        *(f"argocd-apps/{environment}-application.yaml" for environment in ("dev", "staging", "production")),
        *(f"deploy_model/base/{name}.yaml" for name in ("inferenceservice", "servingruntime", "kustomization")),
        *(
            f"deploy_model/overlays/{environment}/kustomization.yaml"
            for environment in ("dev", "staging", "production")
        ),
        "argocd-custom-healthcheck/README.md",
        "argocd-custom-healthcheck/apply-health-check-via-cr.sh",
        "argocd-custom-healthcheck/verify-health-check.sh",
        ".github/workflows/validate.yaml",
        ".gitignore",
        "CODEOWNERS",
        "README.md",
        "argosy.yaml",
        "notebooks/train-job.yaml",
        "notebooks/train.ipynb",
        "pipelines/scripts/check-all.sh",
        "setup_scripts/setup-argocd.sh",
    ):
        assert expected_path in paths


def test_name_and_url_replace_all_template_values() -> None:
    for path, text in texts(FRAUD).items():
        assert not re.search(r"llmops|__[A-Z_]+__|llmops-demo|step-by-step", text), path
    for environment, namespace in (("dev", "dev"), ("staging", "staging"), ("production", "prod")):
        application = documents(FRAUD, f"argocd-apps/{environment}-application.yaml")
        assert application["metadata"]["name"] == f"fraud-{environment}"
        assert application["spec"]["source"]["repoURL"] == "https://github.com/acme/fraud.git"
        assert application["spec"]["source"]["path"] == f"deploy_model/overlays/{environment}"
        assert application["spec"]["destination"]["namespace"] == f"fraud-{namespace}"


def test_argosy_yaml_matches_the_applications() -> None:
    delivery = documents(FRAUD, "argosy.yaml")
    assert (delivery["apiVersion"], delivery["kind"]) == ("argosy.dev/v1", "Delivery")
    assert delivery["repository"] == {"url": FRAUD.url, "ref": "main"}
    assert list(delivery["environments"]) == ["dev", "staging", "production"]
    for name, environment in delivery["environments"].items():
        application = documents(FRAUD, f"argocd-apps/{name}-application.yaml")
        assert environment["application"] == application["metadata"]["name"]
        assert environment["namespace"] == application["spec"]["destination"]["namespace"]
        assert environment["path"] == application["spec"]["source"]["path"]
        assert (environment["sync"] == "auto") == ("automated" in application["spec"]["syncPolicy"])
        assert delivery["argocd"]["namespace"] == application["metadata"]["namespace"]


def test_argosy_yaml_is_a_valid_delivery_file() -> None:
    for repository in (FRAUD, NewRepository()):
        delivery = read_delivery_file(texts(repository)["argosy.yaml"])
        assert delivery.product == repository.name
        assert [environment.after for environment in delivery.environments] == ["", "dev", "staging"]


def test_workflow_matches_the_llmops_tree_except_for_paths() -> None:
    text = (TREE / "pipelines/github/validate.yaml").read_text().replace("llmops-via-argocd/", "")
    assert documents(NewRepository(), ".github/workflows/validate.yaml") == yaml.safe_load(text)


def test_markdown_links_point_to_existing_files() -> None:
    files = texts(FRAUD)
    folders = {str(parent) for path in files for parent in Path(path).parents}
    for path, text in files.items():
        for link in re.findall(r"\]\(([^)#]+)", text) if path.endswith(".md") else ():
            if not re.match(r"[a-z]+:", link):
                target = (Path("/") / Path(path).parent / link).resolve().relative_to("/")
                assert str(target) in files or str(target) in folders, f"{path}: {link}"


def run_notebook(folder: Path) -> str:
    notebook = json.loads(texts(FRAUD)["notebooks/train.ipynb"])
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    command = [sys.executable, "-I", "-c", code]
    subprocess.run(command, env={"MODEL_DIR": str(folder)}, check=True, capture_output=True, timeout=HANG_SECONDS)
    return (folder / "model.json").read_text()


def test_notebook_training_is_deterministic(tmp_path: Path) -> None:
    first, second = run_notebook(tmp_path / "first"), run_notebook(tmp_path / "second")
    assert first == second
    assert json.loads(first)["accuracy"] >= 0.9


def test_notebook_has_unique_cell_ids_and_no_outputs() -> None:
    notebook = json.loads(texts(FRAUD)["notebooks/train.ipynb"])
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")


def test_train_job_references_an_existing_notebook() -> None:
    job = documents(FRAUD, "notebooks/train-job.yaml")
    assert job["spec"]["notebook"]["path"] in texts(FRAUD)
    assert job["spec"]["notebook"]["git"] == {"url": FRAUD.url, "ref": "main"}


@pytest.mark.parametrize(
    ("name", "url", "said"),
    [
        ("Fraud", FRAUD.url, "--name"),
        ("f" * 60, FRAUD.url, "at most 52"),
        ("fraud", "acme/fraud", "not a valid repository URL"),
        ("fraud", "https://github.com/acme/fraud.git\n  evil: true", "not a valid repository URL"),
        ("fraud", "https://me:secret@github.com/acme/fraud.git", "would be committed"),
    ],
)
def test_invalid_name_or_url_is_rejected(name: str, url: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        NewRepository(name, url).validate()


@pytest.mark.parametrize("url", ["git@github.com:acme/fraud.git", "ssh://git@host:2222/x.git", "file:///srv/x.git"])
def test_ssh_and_file_urls_are_accepted(url: str) -> None:
    NewRepository("fraud", url).validate()
    assert documents(NewRepository("fraud", url), "argosy.yaml")["repository"]["url"] == url


def test_scripts_named_in_the_readme_are_executable_files() -> None:
    programs = {file.path for file in FRAUD.build_files() if file.is_executable}
    named = set(re.findall(r"\./([\w./-]+\.sh)", texts(FRAUD)["README.md"]))
    assert {path.partition("/")[0] for path in named} == {"argocd-custom-healthcheck", "pipelines", "setup_scripts"}
    assert named <= programs


def test_all_scripts_of_the_tree_except_tekton_are_included() -> None:
    tree = {path.relative_to(TREE).as_posix() for path in TREE.rglob("*.sh")}
    assert {path for path in tree if not path.startswith("pipelines/tekton/")} <= texts(FRAUD).keys()
