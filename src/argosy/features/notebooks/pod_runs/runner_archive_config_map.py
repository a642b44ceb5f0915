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

import argosy
from argosy.kube.objects import Manifest

ARCHIVE_KEY, CLONE_SCRIPT_KEY = "runner.pyz", "clone.sh"
RUNNER_PACKAGE: Final = "argosy.features.notebooks.runner"
SHARED_MODULES: Final = ("argosy.observability.redaction.text_redaction",)  # what the runner imports of argosy
MAIN_SOURCE: Final = f"""\
import os, sys
if sys.version_info < (3, 11):
    said = "the image has Python %d.%d; use an image with 3.11 or later" % sys.version_info[:2]
    told = '{{"status": "failed", "error": "%s", "error_category": "environment_setup_failed", "exit_code": 2}}' % said
    with open(os.environ.get("TERMINATION_LOG") or "/dev/termination-log", "w") as file:
        file.write(told)
    sys.exit(said)
from {RUNNER_PACKAGE}.pod_main import main
sys.exit(main(sys.argv[1:]))
"""  # which a Python of any age can read
_ARCHIVE_DATE: Final = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that the archive is reproducible


@cache
def build_archive() -> bytes:
    """A program for `python3 FILE`; its packages contain only the runner and what it imports."""
    files = {"__main__.py": MAIN_SOURCE}
    source = Path(argosy.__file__).parents[1]
    runner = sorted((source / RUNNER_PACKAGE.replace(".", "/")).glob("*.py"))
    for file in (*runner, *(source / f"{module.replace('.', '/')}.py" for module in SHARED_MODULES)):
        path = file.relative_to(source)
        for package in list(path.parents)[-2::-1]:
            files.setdefault(f"{package.as_posix()}/__init__.py", "")
        files[path.as_posix()] = file.read_text(encoding="utf-8")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zip_file:
        for name, text in files.items():
            zip_file.writestr(zipfile.ZipInfo(name, _ARCHIVE_DATE), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@cache
def load_clone_script() -> str:
    return (Path(__file__).parent / CLONE_SCRIPT_KEY).read_text(encoding="utf-8")


@cache
def build_config_map_name() -> str:
    digest = hashlib.sha256(build_archive() + load_clone_script().encode()).hexdigest()
    return f"notebook-runner-{digest[:12]}"


def build_config_map(namespace: str, labels: dict[str, str], owner: Manifest) -> Manifest:
    """Owned by the jobs that use it, so that it is deleted with the last of them."""
    metadata = {"name": build_config_map_name(), "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True,
        "data": {CLONE_SCRIPT_KEY: load_clone_script()},
        "binaryData": {ARCHIVE_KEY: base64.b64encode(build_archive()).decode()},
    }  # fmt: skip
