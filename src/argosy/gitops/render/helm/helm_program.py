"""The Helm engine that runs the program `helm`, confined. In: a chart's folder and a HelmRelease. Out: documents.

Never: the network, a kubeconfig, plug-ins, or a file outside the two given folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from argosy.errors import ManifestError
from argosy.gitops.render.helm.limits import LIMITS, READ_LIMITS
from argosy.gitops.render.helm.release import Document, HelmFailed, Release
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.program import run
from argosy.kube.objects import Profile, load_all

_MARK = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SOURCE = re.compile(r"\A\s*# Source: (.+)")


class HelmProgram:
    def __init__(self, path: str, limits: ProgramLimits = LIMITS) -> None:
        self.name, self._limits = path, limits

    def run(self, chart: Path, work: Path, release: Release) -> list[Document]:
        ended = run((self.name, *_arguments(chart, work, release)), folder=chart, readable=(work,), limits=self._limits)
        if ended.code:
            raise HelmFailed(ended.stderr.decode("utf-8", "replace"))
        return list(_documents(ended.stdout.decode("utf-8", "replace"), release.profile))


def _arguments(chart: Path, work: Path, release: Release) -> Iterator[str]:
    """Build the arguments from a fixed list; text from users never stands where Helm would read an option."""
    yield from ("template", str(chart), f"--name-template={release.name}")
    if release.namespace:
        yield f"--namespace={release.namespace}"
    if release.kube_version:
        yield f"--kube-version={release.kube_version}"
    yield from (f"--api-versions={each}" for each in release.api_versions)
    yield from (f"--values={work / values_name(number)}" for number, _ in enumerate(release.values))
    for number, each in enumerate(release.settings):
        value = str(work / setting_name(number)) if each.kind == "set-file" else each.value
        yield f"--{each.kind}={each.name}={value}"
    for name in ("include_crds", "skip_tests", "skip_schema_validation"):
        if getattr(release, name):
            yield f"--{name.replace('_', '-')}"
    if release.skip_hooks:
        yield "--no-hooks"


def values_name(number: int) -> str:
    return f"values-{number}.yaml"


def setting_name(number: int) -> str:
    return f"setting-{number}"


def files_for(release: Release) -> dict[str, bytes]:
    """Build the files that must be in `work` for the arguments."""
    files = {values_name(number): each.content for number, each in enumerate(release.values)}
    for number, each in enumerate(release.settings):
        if each.kind == "set-file":
            files[setting_name(number)] = each.value.encode("utf-8", "surrogateescape")
    return files


def _documents(text: str, profile: Profile) -> Iterator[Document]:
    """Parse the output; line numbers of errors count from the `# Source:` comment, as in a CRD file."""
    source, begin, line = "", 0, 0
    for part in _MARK.split(text):
        if said := _SOURCE.match(part):
            source, begin = said[1].strip(), line + said[0].count("\n") + 1
        try:
            values = load_all(part, profile=profile, where=source, limits=READ_LIMITS)
        except ManifestError as error:
            raise ManifestError(error.message, where=source, line=max(0, line + error.line - begin)) from error
        yield from (Document(source, value) for value in values if value is not None)
        line += part.count("\n")
