"""Creates a repository from the bundled templates. In: a folder, a name, a URL. Out: a summary and the next steps.
Never: leaves a partial repository."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from argosy.features.init.template_files import REPO_URL, NewRepository
from argosy.gitops.workspace.new_repository import BRANCH, make_repository

ABOUT = {
    "argocd-apps/": "the Applications: dev syncs by itself, staging and production wait for you",
    "argocd-custom-healthcheck/": "tell Argo CD when a model is healthy",
    "deploy_model/": "the model, and what differs in each environment",
    "notebooks/": "a training notebook, and the job that runs it",
    "pipelines/, .github/": "the checks before a merge",
    "setup_scripts/": "prepare a cluster, apply the Applications",
    "argosy.yaml": "the environments and the way between them",
}


@dataclass(frozen=True)
class Initialized:
    folder: Path
    files: int
    commit: str  # empty: not committed
    url: str

    def report(self) -> str:
        state = f"commit {self.commit}" if self.commit else "not committed"
        width = max(map(len, ABOUT))
        made = "".join(f"  {name.ljust(width)}  {about}\n" for name, about in ABOUT.items())
        steps = "".join(f"  {step}\n" for step in self.next_steps())
        return f"{self.folder}: a new repository, branch {BRANCH}, {self.files} files, {state}\n{made}next:\n{steps}"

    def next_steps(self) -> tuple[str, str, str]:
        enter = f"cd {shlex.quote(str(self.folder))}"
        if self.url == REPO_URL:
            return enter, "./pipelines/scripts/check-all.sh", f"git grep -l {REPO_URL}   # put your address there"
        push = f"git push -u origin {BRANCH}"
        if not self.commit:
            push = f"git add --all && git commit -m 'Begin' && {push}"
        return enter, push, "argosy setup plan -f argosy.yaml"


def initialize(folder: Path, name: str, url: str, *, is_committed: bool) -> Initialized:
    """Create the repository; an empty URL becomes a placeholder."""
    new = NewRepository(name, url or REPO_URL)
    new.check()
    content = new.files()
    message = f"Begin {name}: a model, three environments, and the checks before a merge"
    commit = make_repository(folder, content, message=message, remote=url, is_committed=is_committed)
    return Initialized(folder, len(content), commit, new.url)
