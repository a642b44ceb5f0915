"""Builds the ConfigMap that all validation Pods of a namespace share: the runner archive and the clone script.

In: files of this package. Out: a ConfigMap named after its content. Never: two contents under one name; files that a
Pod does not need.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

from argosy.kube.objects import Manifest

RUNNER, CLONE = "runner.pyz", "clone.sh"
PACKAGE: Final = "argosy.features.notebooks.runner"
MAIN: Final = f"""\
import os, sys
if sys.version_info < (3, 11):
    said = "the image has Python %d.%d; use an image with 3.11 or later" % sys.version_info[:2]
    told = '{{"status": "failed", "error": "%s", "error_category": "environment_setup_failed", "exit_code": 2}}' % said
    with open(os.environ.get("TERMINATION_LOG") or "/dev/termination-log", "w") as file:
        file.write(told)
    sys.exit(said)
from {PACKAGE}.pod_main import main
sys.exit(main(sys.argv[1:]))
"""  # which a Python of any age can read
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that the archive is reproducible


@cache
def archive() -> bytes:
    """A program for `python3 FILE`; its packages contain only the runner."""
    files = {"__main__.py": MAIN}
    folder = PACKAGE.replace(".", "/")
    for depth in range(1, folder.count("/") + 1):
        files["/".join([*folder.split("/")[:depth], "__init__.py"])] = ""
    for file in sorted((Path(__file__).parents[1] / "runner").glob("*.py")):
        files[f"{folder}/{file.name}"] = file.read_text(encoding="utf-8")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as opened:
        for name, text in files.items():
            opened.writestr(zipfile.ZipInfo(name, _DATE), text, zipfile.ZIP_DEFLATED)
    return made.getvalue()


@cache
def clone_script() -> str:
    return (Path(__file__).parent / CLONE).read_text(encoding="utf-8")


@cache
def name() -> str:
    digest = hashlib.sha256(archive() + clone_script().encode()).hexdigest()
    return f"notebook-runner-{digest[:12]}"


def config_map(namespace: str, labels: dict[str, str], owner: Manifest) -> Manifest:
    """Owned by the jobs that use it, so that it is deleted with the last of them."""
    metadata = {"name": name(), "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True,
        "data": {CLONE: clone_script()},
        "binaryData": {RUNNER: base64.b64encode(archive()).decode()},
    }  # fmt: skip
