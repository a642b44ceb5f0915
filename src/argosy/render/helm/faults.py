"""What Helm says, as an error that names the file and line of the chart.

In: Helm's words, and where the chart is. Out: a RenderError. Never: a path of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.model.errors import RenderError
from argosy.model.tree import Tree
from argosy.render.helm.release import Release

_MOST = 2_000  # characters of Helm's words that are passed on
_AT: Final = re.compile(r"(?:template: |at \()(?P<file>[^\s:()]+):(?P<line>\d+)(?::\d+)?\)?:? ?")
_YAML: Final = re.compile(r"YAML parse error on (?P<file>[^:\s]+): (?P<said>.*)", re.DOTALL)
_VALUES: Final = re.compile(r"values-(\d+)\.yaml")
_YAML_LINE: Final = re.compile(r"\byaml: line (\d+): ?")
_CONVERTING: Final = re.compile(r"error converting YAML to JSON: ")
_CHART_FILE: Final = re.compile(r"cannot load (?P<file>[^\s:]+): (?P<said>.*)", re.DOTALL)
_SCHEMA: Final = "don't meet the specifications of the schema"
_MISSING: Final = re.compile(r"missing in charts/? directory: (.*)")
_NOISE: Final = re.compile(r"\n\nUse --debug flag.*|^Error: |^time=\S+ level=\S+ msg=.*\n", re.DOTALL | re.MULTILINE)
_EXECUTING: Final = re.compile(r'executing "[^"]*" at (<.*?>): ?', re.DOTALL)
_CALLING: Final = re.compile(r"error calling \w+: ")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chart is: in the tree, by its own name, and in the copy that Helm was given."""

    tree: Tree
    folder: str
    chart: str
    copies: Sequence[str] = ()

    def file(self, source: str) -> str:
        """The path in the tree of what Helm calls `chart/templates/x.yaml`; of an alias as Helm calls it."""
        _, _, inside = source.partition("/")
        path = self.within(inside)
        return path if inside and self.tree.entry(path) is not None else source

    def within(self, inside: str) -> str:
        return f"{self.folder}/{inside}" if self.folder else inside


def fault(said: str, place: Place, release: Release) -> RenderError:
    text = _cleaned(said, place)
    for judge in (_in_values, _in_schema, _in_dependencies, _in_yaml, _in_template, _in_chart_file):
        for error in judge(text, place, release):
            return error
    return RenderError(f"Helm says: {text}", where=place.folder or ".")


def _cleaned(said: str, place: Place) -> str:
    for copy in place.copies:
        said = said.replace(f"{copy}/", "").replace(copy, ".")
    return _NOISE.sub("", said).strip()[:_MOST]


def _in_template(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    """The innermost place is where it went wrong; the outermost is the template that led there."""
    found = list(_AT.finditer(text))
    if not found:
        return
    last = found[-1]
    message = _EXECUTING.sub(r"at \1: ", text[last.end() :]).strip() or text
    message = _CALLING.sub("", message).strip()
    first = place.file(found[0]["file"])
    file = place.file(last["file"])
    if first != file:
        message = f"{message} (rendering {first}:{found[0]['line']})"
    yield RenderError(message, where=file, line=int(last["line"]))


def _in_yaml(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _YAML.search(text):
        said = _YAML_LINE.sub(r"line \1 of what it renders: ", _CONVERTING.sub("", found["said"]))
        yield RenderError(f"renders to YAML that cannot be read: {said}", where=place.file(found["file"]))


def _in_values(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    found = _VALUES.search(text)
    named = next((each.where for each in release.values if f"failed to parse {each.where}:" in text), "")
    if found and int(found[1]) < len(release.values):
        named = release.values[int(found[1])].where
    if named:
        line = _YAML_LINE.search(text)
        said = _CONVERTING.sub("", text.rpartition("yaml: ")[2] if "yaml: " in text else text)
        said = re.sub(r"^line \d+: ", "", said)
        yield RenderError(f"cannot be read as values: {said}", where=named, line=int(line[1]) if line else 0)


def _in_schema(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if _SCHEMA in text:
        lines = [line.strip() for line in text.partition(":\n")[2].splitlines() if line.strip()]
        faults = "; ".join(line.removeprefix("- ") for line in lines if line.startswith("- "))
        chart = next((line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith("-")), "")
        schema = place.within("values.schema.json")
        where = schema if chart in ("", place.chart) else f"{place.folder}: values.schema.json of {chart}"
        yield RenderError(f"the values do not fit the schema: {faults or text}", where=where)


def _in_dependencies(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _MISSING.search(text):
        message = f"{found[1].strip()}: declared, but not in charts/; run `helm dependency build` and commit the result"
        yield RenderError(message, where=place.within("Chart.yaml"))


def _in_chart_file(text: str, place: Place, release: Release) -> Iterator[RenderError]:
    if found := _CHART_FILE.search(text):
        line = _YAML_LINE.search(found["said"])
        said = _YAML_LINE.sub("", _CONVERTING.sub("", found["said"]))
        yield RenderError(
            f"cannot be read: {said}", where=place.within(found["file"]), line=int(line[1]) if line else 0
        )
