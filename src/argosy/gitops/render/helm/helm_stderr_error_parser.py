"""Converts Helm's messages to errors that name the file and line of the chart.

In: Helm's stderr, and the chart's location. Out: a RenderError. Never: a path of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from argosy.errors import RenderError
from argosy.gitops.render.helm.engine_interface import HelmRelease
from argosy.gitops.render.helm.symlinks import LinkResolvingTree
from argosy.gitops.render.output_control_character_filter import strip_control_characters

NOT_A_MANIFEST_MESSAGE: Final = "renders a document that is not a manifest; every document needs apiVersion and kind"
_MAX_MESSAGE_CHARACTERS: Final = 2_000  # of Helm's message that are shown
# Helm 3: `template: F:L:C: executing …`, `execution error at (F:L:C): …`; Helm 4: a line `F:L:C`, the text below it.
_TEMPLATE_LOCATION: Final = re.compile(
    r"(?:template: |at \(|^)(?P<file>[^\s:()]+):(?P<line>\d+)(?::\d+)?\)?:?\s*", re.MULTILINE
)
_EXECUTING_PREFIX: Final = re.compile(r'executing "[^"]*" at (<.*?>):\s*', re.DOTALL)
_CALLING_PREFIX: Final = re.compile(r"error calling \w+:\s*(?:template: )?")
_YAML_ERROR: Final = re.compile(r"YAML parse error on (?P<file>[^:\s]+): (?P<said>.*)", re.DOTALL)
_YAML_LINE: Final = re.compile(r"\byaml: line (\d+): ?")
_CONVERSION_PREFIX: Final = re.compile(r"error converting YAML to JSON: |cannot unmarshal yaml document: |yaml: ")
_UNMARSHAL_ERROR: Final = re.compile(r"cannot unmarshal (\w+) into Go")
_VALUES_FILE: Final = re.compile(r"values-(\d+)\.yaml")
_CHART_FILE_ERROR: Final = re.compile(r"cannot load (?P<file>[^\s:]+): (?P<said>.*)", re.DOTALL)
_CHART_METADATA_ERROR: Final = re.compile(r"(?:validation: )?chart\.metadata\.|chart requires kubeVersion")
_MISSING_DEPENDENCY: Final = re.compile(r"missing in charts/? directory: (.*)")
_NOISE: Final = re.compile(r"\n\nUse --debug flag.*|^Error: |^(?:time=|level=|\d{4}/\d\d/\d\d ).*\n", re.DOTALL)
_SCHEMA_ERROR: Final = "don't meet the specifications of the schema"
_SET_FLAG_ERROR: Final = re.compile(r"failed parsing (--set\S*) data: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChartLocation:
    """The location of a chart: its folder in the tree, its own name, and the paths of the copies that Helm reads."""

    tree: LinkResolvingTree
    folder: str
    chart: str
    copies: Sequence[str] = ()
    folder_by_chart_name: Mapping[str, str] = field(
        default_factory=dict
    )  # Helm's name of a subchart → its folder in charts/

    def resolve_source(self, source: str) -> str:
        """Return the path in the tree of `chart/templates/x.yaml`; the unchanged text if there is no such file."""
        return self._find_path(source) or source

    def has_file(self, source: str) -> bool:
        return bool(self._find_path(source))

    def _find_path(self, source: str) -> str:
        _, _, inside = source.partition("/")
        steps = inside.split("/")
        if steps[0] == "charts" and len(steps) > 1:
            steps[1] = self.folder_by_chart_name.get(steps[1], steps[1])
        path = self.join_path("/".join(steps))
        return self.tree.resolve_mount(path) if inside and self.tree.find_entry(path) is not None else ""

    def join_path(self, inside: str) -> str:
        return f"{self.folder}/{inside}" if self.folder else inside


def build_helm_error(helm_message: str, location: ChartLocation, release: HelmRelease) -> RenderError:
    for copy in location.copies:
        helm_message = helm_message.replace(f"{copy}/", "").replace(copy, ".")
    text = _NOISE.sub("", strip_control_characters(helm_message)).strip()
    for read_error in (
        _read_values_error,
        _read_schema_error,
        _read_chart_error,
        _read_yaml_error,
        _read_parameter_error,
        _read_template_error,
    ):
        for error in read_error(text, location, release):
            return error
    return RenderError(f"Helm failed: {_shorten(text)}", where=location.folder or ".")


def _shorten(text: str) -> str:
    plain = " ".join(text.split()).replace("; ", ", ")  # in our messages the advice follows a semicolon
    return (
        plain
        if len(plain) <= _MAX_MESSAGE_CHARACTERS
        else f"{plain[: _MAX_MESSAGE_CHARACTERS // 2]} … {plain[-_MAX_MESSAGE_CHARACTERS // 2 :]}"
    )


def _read_template_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    """The innermost location is where the error occurred; the outermost is the template that called it."""
    matches = list(_TEMPLATE_LOCATION.finditer(text))
    known_matches = [match for match in matches if location.has_file(match["file"])] or matches
    if not known_matches:
        return
    first, last = known_matches[0], known_matches[-1]
    message = _CALLING_PREFIX.sub("", _EXECUTING_PREFIX.sub(r"at \1: ", text[matches[-1].end() :]))
    if last is not matches[-1]:  # a template in a value has no file
        message = f"in a value rendered with `tpl`, {message}"
    if first["file"] != last["file"]:
        message = f"{message} (rendering {location.resolve_source(first['file'])}:{first['line']})"
    yield RenderError(_shorten(message), where=location.resolve_source(last["file"]), line=int(last["line"]))


def _read_yaml_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    if match := _YAML_ERROR.search(text):
        cause = _CONVERSION_PREFIX.sub("", _YAML_LINE.sub(r"line \1 of its output: ", match["said"]))
        message = (
            NOT_A_MANIFEST_MESSAGE if _UNMARSHAL_ERROR.search(cause) else f"renders invalid YAML: {_shorten(cause)}"
        )
        yield RenderError(message, where=location.resolve_source(match["file"]))


def _read_values_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    match = _VALUES_FILE.search(text)
    file_name = next(
        (values_file.where for values_file in release.values if f"failed to parse {values_file.where}:" in text), ""
    )
    if match and int(match[1]) < len(release.values):
        file_name = release.values[int(match[1])].where
    if not file_name:
        return
    line = _YAML_LINE.search(text)
    cause = _CONVERSION_PREFIX.sub("", _YAML_LINE.sub("", text.partition(": ")[2]))
    if kind := _UNMARSHAL_ERROR.search(text):
        cause = f"it is {kind[1]}; write a mapping"
    yield RenderError(f"cannot be read as values: {_shorten(cause)}", where=file_name, line=int(line[1]) if line else 0)


def _read_schema_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    if _SCHEMA_ERROR not in text:
        return
    lines = [line.strip() for line in text.partition(":\n")[2].splitlines() if line.strip()]
    violations = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    charts = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith("- ")]
    chart_text = "" if charts[:1] in ([], [location.chart]) else f" of the chart {charts[0]}"
    cause = "; ".join(violations) or "; ".join(line for line in lines if not line.endswith(":"))
    if violations:
        message = (
            f"the values do not match the schema{chart_text}: {_shorten(cause)}; correct the values, or the schema"
        )
    else:
        message = f"the schema{chart_text} cannot be used: {_shorten(cause)}; correct it, or set skipSchemaValidation"
    yield RenderError(message, where=location.join_path("values.schema.json"))


def _read_parameter_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    if match := _SET_FLAG_ERROR.search(text):
        name = "fileParameters" if match[1] == "--set-file" else "parameters"
        yield RenderError(f"Helm cannot parse a parameter: {_shorten(match[2])}", where=f"source.helm.{name}")


def _read_chart_error(text: str, location: ChartLocation, release: HelmRelease) -> Iterator[RenderError]:
    if match := _MISSING_DEPENDENCY.search(text):
        message = f"{match[1].strip()}: declared, but not in charts/; run `helm dependency build` and commit the result"
        yield RenderError(message, where=location.join_path("Chart.yaml"))
    if _CHART_METADATA_ERROR.search(text):
        yield RenderError(_shorten(text), where=location.join_path("Chart.yaml"))
    if match := _CHART_FILE_ERROR.search(text):
        line = _YAML_LINE.search(match["said"])
        cause = _shorten(_CONVERSION_PREFIX.sub("", _YAML_LINE.sub("", match["said"])))
        number = int(line[1]) if line else 0
        yield RenderError(f"cannot be parsed: {cause}", where=location.join_path(match["file"]), line=number)
