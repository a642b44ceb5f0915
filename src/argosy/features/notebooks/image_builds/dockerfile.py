"""Generates the Dockerfile of a notebook image if the repository has no suitable one.

In: a job. Out: text. Never: puts unquoted user input into a shell command.
"""

from __future__ import annotations

import base64
import posixpath
import shlex
from typing import Final

from argosy.features.notebooks.job import Job

HOME: Final = "/opt/app-root/src"  # folder of the notebook in a built image
RUNNER_NEEDS: Final = "nbclient nbformat ipykernel"
FILE: Final = "requirements.txt"

# Runs in the build: installs packages that the notebook imports and the image lacks; maps import names to packages.
IMPORTS: Final = """
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


def candidates(job: Job) -> list[str]:
    """Paths of requirements files; the first one that exists is used."""
    assert job.build is not None
    if job.build.requirements:
        return [job.build.requirements]
    if job.build.requirements_sources:
        return list(job.build.requirements_sources)
    folder = posixpath.dirname(job.notebook.path)
    found = [posixpath.join(folder, FILE) if folder else FILE, f"notebooks/{FILE}", FILE]
    return list(dict.fromkeys(found))


def dockerfile(job: Job) -> str:
    assert job.build is not None
    return "\n".join([
        f"FROM {job.build.base_image}",
        "USER root",
        f"COPY . {HOME}",
        f"RUN chgrp -R 0 {HOME} && chmod -R g=u {HOME}",
        f"WORKDIR {HOME}",
        f"RUN {_install(job)}",
        f"RUN python -m pip install --no-cache-dir {RUNNER_NEEDS}",
        "USER 1001",
        "",
    ])  # fmt: skip


def _install(job: Job) -> str:
    """Install the first requirements file that exists."""
    build, files = job.build, [shlex.quote(each) for each in candidates(job)]
    assert build is not None
    steps = [f"if [ -f {each} ]; then python -m pip install --no-cache-dir -r {each};" for each in files]
    return " el".join(steps) + f" else {_otherwise(job)}; fi"


def _otherwise(job: Job) -> str:
    """Shell command of `fallbackStrategy`, for a repository without requirements."""
    assert job.build is not None
    shown = shlex.quote("no requirements found in " + ", ".join(candidates(job)))
    if job.build.fallback == "fail":
        return f"echo {shown} >&2; exit 1"
    if job.build.fallback == "auto":
        script = base64.b64encode(IMPORTS.encode()).decode()
        return f"echo {script} | base64 -d > /tmp/imports.py && python /tmp/imports.py {shlex.quote(job.notebook.path)}"
    return f"echo WARNING: {shown}, using the unmodified base image"
