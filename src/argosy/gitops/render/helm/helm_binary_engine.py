"""The Helm engine that runs the program `helm`, confined. In: a chart's folder and a HelmRelease. Out: documents.

Never: the network, a kubeconfig, plug-ins, or a file outside the two given folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from argosy.errors import ManifestError
from argosy.gitops.render.helm.engine_interface import HelmDocument, HelmFailure, HelmRelease
from argosy.gitops.render.helm.limits import HELM_LIMITS, HELM_OUTPUT_LIMITS
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import run
from argosy.kube.objects import YamlDialect, read_yaml_documents

_DOCUMENT_SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SOURCE_COMMENT = re.compile(r"\A\s*# Source: (.+)")


class HelmProgram:
    def __init__(self, path: str, limits: ProgramLimits = HELM_LIMITS) -> None:
        self.name, self._limits = path, limits

    def run(self, chart: Path, work: Path, release: HelmRelease) -> list[HelmDocument]:
        result = run(
            (self.name, *_build_arguments(chart, work, release)), folder=chart, readable=(work,), limits=self._limits
        )
        if result.code:
            raise HelmFailure(result.stderr.decode("utf-8", "replace"))
        return list(_list_documents(result.stdout.decode("utf-8", "replace"), release.profile))


def _build_arguments(chart: Path, work: Path, release: HelmRelease) -> Iterator[str]:
    """Build the arguments from a fixed list; text from users never stands where Helm would read an option."""
    yield from ("template", str(chart), f"--name-template={release.name}")
    if release.namespace:
        yield f"--namespace={release.namespace}"
    if release.kube_version:
        yield f"--kube-version={release.kube_version}"
    yield from (f"--api-versions={item}" for item in release.api_versions)
    yield from (f"--values={work / format_values_file_name(i)}" for i, _ in enumerate(release.values))
    for i, item in enumerate(release.settings):
        value = str(work / format_set_file_name(i)) if item.kind == "set-file" else item.value
        yield f"--{item.kind}={item.name}={value}"
    for name in ("include_crds", "skip_tests", "skip_schema_validation"):
        if getattr(release, name):
            yield f"--{name.replace('_', '-')}"
    if release.skip_hooks:
        yield "--no-hooks"


def format_values_file_name(index: int) -> str:
    return f"values-{index}.yaml"


def format_set_file_name(index: int) -> str:
    return f"setting-{index}"


def build_work_files(release: HelmRelease) -> dict[str, bytes]:
    """Build the files that must be in `work` for the arguments."""
    files = {format_values_file_name(i): item.content for i, item in enumerate(release.values)}
    for i, item in enumerate(release.settings):
        if item.kind == "set-file":
            files[format_set_file_name(i)] = item.value.encode("utf-8", "surrogateescape")
    return files


def _list_documents(text: str, profile: YamlDialect) -> Iterator[HelmDocument]:
    """Parse the output; line numbers of errors count from the `# Source:` comment, as in a CRD file."""
    source, source_line, line = "", 0, 0
    for part in _DOCUMENT_SEPARATOR.split(text):
        if match := _SOURCE_COMMENT.match(part):
            source, source_line = match[1].strip(), line + match[0].count("\n") + 1
        try:
            values = read_yaml_documents(part, dialect=profile, where=source, limits=HELM_OUTPUT_LIMITS)
        except ManifestError as error:
            raise ManifestError(error.message, where=source, line=max(0, line + error.line - source_line)) from error
        yield from (HelmDocument(source, value) for value in values if value is not None)
        line += part.count("\n")
