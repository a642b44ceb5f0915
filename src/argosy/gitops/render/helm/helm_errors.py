"""Converts Helm's messages to errors that name the file and line of the chart.

In: Helm's stderr, and the chart's location. Out: a RenderError. Never: a path of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from argosy.errors import RenderError
from argosy.gitops.render.helm.release import Release
from argosy.gitops.render.helm.symlinks import FollowedTree
from argosy.gitops.render.program_output import cleaned

NO_MANIFEST: Final = "renders a document that is not a manifest; every document needs apiVersion and kind"
_MOST: Final = 2_000  # of Helm's message that are shown
# Helm 3: `template: F:L:C: executing …`, `execution error at (F:L:C): …`; Helm 4: a line `F:L:C`, the text below it.
_AT: Final = re.compile(r"(?:template: |at \(|^)(?P<file>[^\s:()]+):(?P<line>\d+)(?::\d+)?\)?:?\s*", re.MULTILINE)
_EXECUTING: Final = re.compile(r'executing "[^"]*" at (<.*?>):\s*', re.DOTALL)
_CALLING: Final = re.compile(r"error calling \w+:\s*(?:template: )?")
_YAML: Final = re.compile(r"YAML parse error on (?P<file>[^:\s]+): (?P<said>.*)", re.DOTALL)
_YAML_LINE: Final = re.compile(r"\byaml: line (\d+): ?")
_CONVERTING: Final = re.compile(r"error converting YAML to JSON: |cannot unmarshal yaml document: |yaml: ")
_UNMARSHAL: Final = re.compile(r"cannot unmarshal (\w+) into Go")
_VALUES: Final = re.compile(r"values-(\d+)\.yaml")
_CHART_FILE: Final = re.compile(r"cannot load (?P<file>[^\s:]+): (?P<said>.*)", re.DOTALL)
_CHART: Final = re.compile(r"(?:validation: )?chart\.metadata\.|chart requires kubeVersion")
_MISSING: Final = re.compile(r"missing in charts/? directory: (.*)")
_NOISE: Final = re.compile(r"\n\nUse --debug flag.*|^Error: |^(?:time=|level=|\d{4}/\d\d/\d\d ).*\n", re.DOTALL)
_SCHEMA: Final = "don't meet the specifications of the schema"
_SET: Final = re.compile(r"failed parsing (--set\S*) data: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a chart: its folder in the tree, its own name, and the paths of the copies that Helm reads."""

    tree: FollowedTree
    folder: str
    chart: str
    copies: Sequence[str] = ()
    folders: Mapping[str, str] = field(default_factory=dict)  # Helm's name of a subchart → its folder in charts/

    def file(self, source: str) -> str:
        """Return the path in the tree of `chart/templates/x.yaml`; the unchanged text if there is no such file."""
        return self._found(source) or source

    def has(self, source: str) -> bool:
        return bool(self._found(source))

    def _found(self, source: str) -> str:
        _, _, inside = source.partition("/")
        steps = inside.split("/")
        if steps[0] == "charts" and len(steps) > 1:
            steps[1] = self.folders.get(steps[1], steps[1])
        path = self.within("/".join(steps))
        return self.tree.real(path) if inside and self.tree.entry(path) is not None else ""

    def within(self, inside: str) -> str:
        return f"{self.folder}/{inside}" if self.folder else inside


def fault(said: str, place: Place, release: Release) -> RenderError:
    for copy in place.copies:
        said = said.replace(f"{copy}/", "").replace(copy, ".")
    text = _NOISE.sub("", cleaned(said)).strip()
    for judge in (_in_values, _in_schema, _in_chart, _in_yaml, _in_parameters, _in_template):
        for error in judge(text, place, release):
            return error
    return RenderError(f"Helm failed: {_short(text)}", where=place.folder or ".")


def _short(text: str) -> str:
    plain = " ".join(text.split()).replace("; ", ", ")  # in our messages the advice follows a semicolon
    return plain if len(plain) <= _MOST else f"{plain[: _MOST // 2]} … {plain[-_MOST // 2 :]}"


def _in_template(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    """The innermost location is where the error occurred; the outermost is the template that called it."""
    found = list(_AT.finditer(text))
    known = [each for each in found if place.has(each["file"])] or found
    if not known:
        return
    first, last = known[0], known[-1]
    message = _CALLING.sub("", _EXECUTING.sub(r"at \1: ", text[found[-1].end() :]))
    if last is not found[-1]:  # a template in a value has no file
        message = f"in a value rendered with `tpl`, {message}"
    if first["file"] != last["file"]:
        message = f"{message} (rendering {place.file(first['file'])}:{first['line']})"
    yield RenderError(_short(message), where=place.file(last["file"]), line=int(last["line"]))


def _in_yaml(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _YAML.search(text):
        said = _CONVERTING.sub("", _YAML_LINE.sub(r"line \1 of its output: ", found["said"]))
        message = NO_MANIFEST if _UNMARSHAL.search(said) else f"renders invalid YAML: {_short(said)}"
        yield RenderError(message, where=place.file(found["file"]))


def _in_values(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    found = _VALUES.search(text)
    named = next((each.where for each in release.values if f"failed to parse {each.where}:" in text), "")
    if found and int(found[1]) < len(release.values):
        named = release.values[int(found[1])].where
    if not named:
        return
    line = _YAML_LINE.search(text)
    said = _CONVERTING.sub("", _YAML_LINE.sub("", text.partition(": ")[2]))
    if kind := _UNMARSHAL.search(text):
        said = f"it is {kind[1]}; write a mapping"
    yield RenderError(f"cannot be read as values: {_short(said)}", where=named, line=int(line[1]) if line else 0)


def _in_schema(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if _SCHEMA not in text:
        return
    lines = [line.strip() for line in text.partition(":\n")[2].splitlines() if line.strip()]
    faults = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    charts = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith("- ")]
    inside = "" if charts[:1] in ([], [place.chart]) else f" of the chart {charts[0]}"
    said = "; ".join(faults) or "; ".join(line for line in lines if not line.endswith(":"))
    if faults:
        message = f"the values do not match the schema{inside}: {_short(said)}; correct the values, or the schema"
    else:
        message = f"the schema{inside} cannot be used: {_short(said)}; correct it, or set skipSchemaValidation"
    yield RenderError(message, where=place.within("values.schema.json"))


def _in_parameters(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _SET.search(text):
        name = "fileParameters" if found[1] == "--set-file" else "parameters"
        yield RenderError(f"Helm cannot parse a parameter: {_short(found[2])}", where=f"source.helm.{name}")


def _in_chart(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _MISSING.search(text):
        message = f"{found[1].strip()}: declared, but not in charts/; run `helm dependency build` and commit the result"
        yield RenderError(message, where=place.within("Chart.yaml"))
    if _CHART.search(text):
        yield RenderError(_short(text), where=place.within("Chart.yaml"))
    if found := _CHART_FILE.search(text):
        line = _YAML_LINE.search(found["said"])
        said = _short(_CONVERTING.sub("", _YAML_LINE.sub("", found["said"])))
        number = int(line[1]) if line else 0
        yield RenderError(f"cannot be parsed: {said}", where=place.within(found["file"]), line=number)
