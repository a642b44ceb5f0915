#!/usr/bin/env python3
"""Finds credentials, Secrets with values and pods with too many permissions, which must not be in Git or the cluster.

In: the folder of rendered overlays. Out: one line per finding; exit code 1 if there is one.
Never: prints a credential that it found.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import FOLDER, format_name, format_path, get_nested, iterate_mappings, read_environments, report

CREDENTIALS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a kubeconfig's key": r"client-key-data:\s*\S{20}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_\w{36}|github_pat_\w{40})",
    "an OpenShift token": r"\bsha256~[\w-]{43}",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "a password in an address": r"://[^/\s:@$<{]+:[^/\s:@$<{]+@",
}
SECRET_NAME = re.compile(r"PASSWORD|TOKEN|SECRET|ACCESS_KEY|API_KEY", re.IGNORECASE)
NOT_SCANNED = {".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
RIGHTS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


def scan_text(path: Path) -> Iterator[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        for credential, pattern in CREDENTIALS.items():
            if re.search(pattern, line):
                line_name = f"{format_path(path)}: line {number}"
                yield f"{line_name}: looks like {credential}; remove it and replace the credential"


def scan_secret(manifest: dict[str, Any]) -> Iterator[str]:
    for field in ("data", "stringData"):
        for key, value in (manifest.get(field) or {}).items():
            if value not in (None, ""):
                yield f"{field}.{key} has a value; use deploy_model/secret-examples"


def scan_pod(pod: dict[str, Any]) -> Iterator[str]:
    yield from (f"{field} is on" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.get(field))
    for volume in pod.get("volumes") or []:
        if "hostPath" in volume:
            yield f"the volume {volume.get('name')} is a folder of the node (hostPath)"
    for container in [*(pod.get("containers") or []), *(pod.get("initContainers") or [])]:
        for finding in scan_container(container):
            yield f"container {container.get('name')}: {finding}"


def scan_container(container: dict[str, Any]) -> Iterator[str]:
    context = container.get("securityContext") or {}
    yield from (f"{field} is on" for field in ("privileged", "allowPrivilegeEscalation") if context.get(field))
    if context.get("runAsUser") == 0:
        yield "runs as root"
    for capability in (context.get("capabilities") or {}).get("add") or []:
        yield f"has the capability {capability}"
    if image := container.get("image"):
        yield from scan_image(image)
    for variable in container.get("env") or []:
        if SECRET_NAME.search(str(variable.get("name"))) and variable.get("value"):
            yield f"{variable['name']} has a value; read it from a Secret"


def scan_image(image: str) -> Iterator[str]:
    tag = image.rpartition("/")[2].partition(":")[2]
    if "@sha256:" not in image and tag in ("", "latest"):
        yield f"the image {image} is not pinned; use a tag or a digest"


def scan_manifest(manifest: dict[str, Any]) -> Iterator[str]:
    kind = manifest.get("kind")
    if kind in RIGHTS:
        yield "grants permissions; a model needs none, and setup_scripts grants those of Argo CD"
    if kind == "Secret":
        yield from scan_secret(manifest)
    if kind == "SealedSecret" and "replace-me" in (get_nested(manifest, "spec", "encryptedData") or {}).values():
        yield "still has replace-me values"
    for mapping in iterate_mappings(manifest):
        if isinstance(mapping.get("containers"), list):
            yield from scan_pod(mapping)
        if str(mapping.get("storageUri", "")).startswith("oci://"):
            yield from scan_image(mapping["storageUri"].removeprefix("oci://"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rendered", type=Path, help="output folder of render.sh")
    environments = read_environments(parser.parse_args().rendered)
    files = [path for path in sorted(FOLDER.rglob("*")) if path.is_file() and not NOT_SCANNED & set(path.parts)]
    findings = [finding for path in files for finding in scan_text(path)]
    for environment, manifests in environments.items():
        for manifest in manifests:
            findings += [f"{environment}: {format_name(manifest)}: {finding}" for finding in scan_manifest(manifest)]
    scanned = f"{len(files)} files and {len(environments)} environments"
    report(findings, f"{scanned}: no credentials, no special permissions")
