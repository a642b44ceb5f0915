"""Generates the Dockerfile of a notebook image if the repository has no suitable one.

In: a job. Out: text. Never: puts unquoted user input into a shell command.
"""

from __future__ import annotations

import base64
import posixpath
import shlex
from typing import Final

from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob

SOURCE_FOLDER: Final = "/opt/app-root/src"  # folder of the notebook in a built image
RUNNER_PACKAGES: Final = "nbclient nbformat ipykernel"
REQUIREMENTS_FILE: Final = "requirements.txt"

# Runs in the build: installs packages that the notebook imports and the image lacks; maps import names to packages.
INSTALL_IMPORTS_SCRIPT: Final = """
import ast, importlib.util, json, subprocess, sys
OTHER = {"sklearn": "scikit-learn", "cv2": "opencv-python-headless", "yaml": "PyYAML", "PIL": "pillow", "bs4": "beautifulsoup4"}
names = set()
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    lines = "".join(cell["source"]).splitlines()
    try:
        tree = ast.parse("\\n".join(line for line in lines if not line.lstrip().startswith(("%", "!"))))
    except SyntaxError:
        continue
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
missing = [OTHER.get(name, name) for name in sorted(names) if importlib.util.find_spec(name) is None]
print("the notebook imports what the image has not:", missing)
if missing:
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--no-cache-dir", *missing])
"""  # noqa: E501


def list_requirements_candidates(job: NotebookJob) -> list[str]:
    """Paths of requirements files; the first one that exists is used."""
    assert job.build is not None
    if job.build.requirements:
        return [job.build.requirements]
    if job.build.requirements_sources:
        return list(job.build.requirements_sources)
    folder = posixpath.dirname(job.notebook.path)
    paths = [
        posixpath.join(folder, REQUIREMENTS_FILE) if folder else REQUIREMENTS_FILE,
        f"notebooks/{REQUIREMENTS_FILE}",
        REQUIREMENTS_FILE,
    ]
    return list(dict.fromkeys(paths))


def render_dockerfile(job: NotebookJob) -> str:
    assert job.build is not None
    return "\n".join([
        f"FROM {job.build.base_image}",
        "USER root",
        f"COPY . {SOURCE_FOLDER}",
        f"RUN chgrp -R 0 {SOURCE_FOLDER} && chmod -R g=u {SOURCE_FOLDER}",
        f"WORKDIR {SOURCE_FOLDER}",
        f"RUN {_build_install_command(job)}",
        f"RUN python -m pip install --no-cache-dir {RUNNER_PACKAGES}",
        "USER 1001",
        "",
    ])  # fmt: skip


def _build_install_command(job: NotebookJob) -> str:
    """Install the first requirements file that exists."""
    build, files = job.build, [shlex.quote(path) for path in list_requirements_candidates(job)]
    assert build is not None
    steps = [f"if [ -f {path} ]; then python -m pip install --no-cache-dir -r {path};" for path in files]
    return " el".join(steps) + f" else {_build_fallback_command(job)}; fi"


def _build_fallback_command(job: NotebookJob) -> str:
    """Shell command of `fallbackStrategy`, for a repository without requirements."""
    assert job.build is not None
    message = shlex.quote("no requirements found in " + ", ".join(list_requirements_candidates(job)))
    if job.build.fallback == "fail":
        return f"echo {message} >&2; exit 1"
    if job.build.fallback == "auto":
        script = base64.b64encode(INSTALL_IMPORTS_SCRIPT.encode()).decode()
        return f"echo {script} | base64 -d > /tmp/imports.py && python /tmp/imports.py {shlex.quote(job.notebook.path)}"
    return f"echo WARNING: {message}, using the unmodified base image"
