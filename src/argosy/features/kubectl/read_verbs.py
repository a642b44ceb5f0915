"""The verbs get, describe, version and api-resources: objects as server-side tables, JSON, YAML, names or templates.

In: KubectlSession. Out: printed text. Never: writes to the cluster.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from argosy import __version__
from argosy.errors import ClusterError, UserError
from argosy.features.kubectl.jsonpath import format_value, render_template
from argosy.features.kubectl.session import KubectlError, KubectlSession, build_not_found_error, print_lines
from argosy.kube.client.resource_arguments import NamedResources
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import join_api_version
from argosy.kube.schema.jsonpath import compile_path
from argosy.kube.well_known_kinds import EVENT

TableRow = tuple[Manifest, list[str]]


async def get(session: KubectlSession) -> int:
    resources = await session.resolve_resources()
    if session.args.output in ("", "wide"):
        return await _print_resource_tables(session, resources)
    manifests = [manifest async for _, manifest in _iterate_existing(session, resources)]
    if path := session.args.sort_by:
        manifests.sort(key=lambda manifest: _sort_key(manifest, path))
    is_one = len(manifests) == 1 and len(resources) == 1 and len(resources[0].names) == 1
    _print_objects(session, manifests, is_one=is_one, kinds=resources)
    return 0


async def _iterate_existing(session: KubectlSession, resources: Sequence[NamedResources]) -> Any:
    try:
        async for item in session.iterate_objects(resources):
            yield item
    except ClusterError as error:
        if not (session.args.ignore_not_found and error.code == 404):
            raise


def _sort_key(manifest: Manifest, path: str) -> tuple[bool, float, str]:
    value = compile_path(path).find_first(manifest)
    is_number = isinstance(value, int | float)
    return value is None, float(value) if is_number else 0.0, "" if is_number else format_value(value)


def _print_objects(
    session: KubectlSession, manifests: list[Manifest], *, is_one: bool, kinds: Sequence[NamedResources]
) -> None:
    output = session.args.output
    output_format, _, template = output.partition("=")
    document: Any = manifests[0] if is_one else {
        "apiVersion": "v1", "items": manifests, "kind": "List", "metadata": {"resourceVersion": ""}
    }  # fmt: skip
    match output_format:
        case "json":
            print_lines(json.dumps(_strip_managed_fields(document), indent=4, ensure_ascii=False, sort_keys=True))
        case "yaml":
            sys.stdout.write(dump_yaml(_strip_managed_fields(document)))
        case "name":
            by_kind = {item.kind.kind: item for item in kinds}
            print_lines(*(by_kind[item["kind"]].format_name(item["metadata"]["name"]) for item in manifests))
        case "jsonpath" if template:
            sys.stdout.write(render_template(template, document))
        case "custom-columns" if template:
            columns = [column.partition(":") for column in _split_columns(template)]
            rows = [[_format_cell(path, item) for _, _, path in columns] for item in manifests]
            print_rows([] if session.args.no_headers else [name for name, _, _ in columns], rows)
        case _:
            supported = "json, yaml, name, wide, jsonpath=…, custom-columns=…"
            raise UserError(
                f"output format {output!r} is not supported; use {supported}, or install kubectl", where="-o"
            )


def _split_columns(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _format_cell(path: str, manifest: Manifest) -> str:
    return ",".join(map(format_value, compile_path(path).find_all(manifest))) or "<none>"


def _strip_managed_fields(value: Any) -> Any:
    """k8s: managedFields are not shown."""
    if isinstance(value, dict) and "items" in value and value.get("kind") == "List":
        return {**value, "items": [_strip_managed_fields(item) for item in value["items"]]}
    metadata = {name: item for name, item in value.get("metadata", {}).items() if name != "managedFields"}
    return {**value, "metadata": metadata}


# -- tables


async def _print_resource_tables(session: KubectlSession, resources: Sequence[NamedResources]) -> int:
    has_several_kinds = len({resource.kind for resource in resources}) > 1
    printed_rows = code = 0
    for resource in resources:
        columns, rows, problems = await _fetch_table(session, resource)
        code = code or int(bool(problems))
        if session.args.sort_by:
            rows.sort(key=lambda row: _sort_key(row[0], session.args.sort_by))
        if rows:
            if printed_rows:
                print_lines("")
            _print_table(session, resource, columns, rows, has_several_kinds=has_several_kinds)
            printed_rows += len(rows)
        for problem in problems:
            print(f"Error from server ({problem.reason}): {problem.message}", file=sys.stderr, flush=True)
    if not printed_rows and not code and not session.args.ignore_not_found:
        has_namespace = any(session.get_request_namespace(resource) for resource in resources)
        where = f" in {session.namespace} namespace." if has_namespace else ""
        print(f"No resources found{where}", file=sys.stderr)
    if session.args.watch:
        await _watch_table(session, resources)
    return code


async def _fetch_table(
    session: KubectlSession, resource: NamedResources
) -> tuple[list[Mapping[str, Any]], list[TableRow], list[ClusterError]]:
    columns: list[Mapping[str, Any]] = []
    rows: list[TableRow] = []
    problems: list[ClusterError] = []
    for name in resource.names or ("",):
        try:
            table = await session.cluster.fetch_table(
                resource.kind, namespace=session.get_request_namespace(resource), name=name,
                labels=session.args.selector, fields=session.args.field_selector,
            )  # fmt: skip
        except ClusterError as error:
            is_missing = error.code == 404 and name
            if not (is_missing and session.args.ignore_not_found):
                problems.append(build_not_found_error(resource, name) if is_missing else error)
            continue
        columns = table["columnDefinitions"]
        rows += [
            (row["object"], [_format_table_cell(cell) for cell in row["cells"]]) for row in table.get("rows") or ()
        ]
    if problems and not resource.names:
        raise problems[0]
    return columns, rows, problems


def _format_table_cell(cell: Any) -> str:
    """k8s: only the first line is shown, and an escape sequence does not reach the terminal."""
    if cell is None or cell == "":
        return "<none>"
    line, *other_lines = re.split(r"[\f\n\r]", format_value(cell), maxsplit=1)
    return line.replace("\x1b", "^[") + ("..." if other_lines else "")


def _print_table(
    session: KubectlSession,
    resource: NamedResources,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[TableRow],
    *,
    has_several_kinds: bool = False,
    headers: bool = True,
) -> None:
    column_indexes = [
        index for index, column in enumerate(columns) if not column.get("priority") or session.args.output == "wide"
    ]
    header = [str(columns[index]["name"]).upper() for index in column_indexes]
    cells = [[row[index] for index in column_indexes] for _, row in rows]
    if has_several_kinds:
        for row in cells:
            row[0] = resource.format_name(row[0])
    if session.args.all_namespaces and resource.info.namespaced:
        header.insert(0, "NAMESPACE")
        for (manifest, _), row in zip(rows, cells, strict=True):
            row.insert(0, manifest["metadata"].get("namespace") or "")
    if session.args.show_labels:
        header.append("LABELS")
        for (manifest, _), row in zip(rows, cells, strict=True):
            labels = manifest["metadata"].get("labels") or {}
            row.append(",".join(f"{name}={labels[name]}" for name in sorted(labels)) or "<none>")
    print_rows(header if headers and not session.args.no_headers else [], cells)


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [*([header] if header else []), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        print_lines("   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


async def _watch_table(session: KubectlSession, resources: Sequence[NamedResources]) -> None:
    if len(resources) != 1:
        raise KubectlError("you may only watch a single kind")
    resource = resources[0]
    namespace = session.get_request_namespace(resource)
    resource_version = (
        await session.cluster.list(resource.kind, namespace=namespace, labels=session.args.selector)
    ).version
    async for event in session.cluster.watch(
        resource.kind, since=resource_version, namespace=namespace, labels=session.args.selector
    ):
        name = event.manifest["metadata"].get("name")
        if event.type in ("ADDED", "MODIFIED") and (not resource.names or name in resource.names):
            single_resource = NamedResources(resource.kind, resource.info, (name,))
            columns, rows, _ = await _fetch_table(session, single_resource)
            if rows:
                _print_table(session, resource, columns, rows, headers=False)


# -- describe


async def describe(session: KubectlSession) -> int:
    """Print a short description: metadata, the other fields as YAML, and Events."""
    first = True
    async for resource, manifest in session.iterate_objects(await session.resolve_resources()):
        if not first:
            print_lines("")
        first = False
        metadata = manifest["metadata"]
        print_lines(f"Name:         {metadata['name']}")
        if resource.info.namespaced:
            print_lines(f"Namespace:    {metadata['namespace']}")
        for title, field in (("Labels", "labels"), ("Annotations", "annotations")):
            pairs = [f"{name}={value}" for name, value in sorted((metadata.get(field) or {}).items())] or ["<none>"]
            print_lines(f"{title + ':':<13} {pairs[0]}", *(f"{'':<13} {pair}" for pair in pairs[1:]))
        other_fields = {
            name: field_value
            for name, field_value in manifest.items()
            if name not in ("metadata", "apiVersion", "kind")
        }
        print_lines(f"Kind:         {manifest['kind']} ({manifest['apiVersion']})", dump_yaml(other_fields).rstrip())
        await _print_events(session, manifest)
    return 0


async def _print_events(session: KubectlSession, manifest: Manifest) -> None:
    fields = f"involvedObject.uid={manifest['metadata'].get('uid')}"
    namespace = manifest["metadata"].get("namespace") or "default"
    events = (await session.cluster.list(EVENT, namespace=namespace, fields=fields)).items
    if not events:
        print_lines("Events:       <none>")
        return
    print_lines("Events:")
    rows = [[f"  {event.get('type')}", str(event.get("reason")), str(event.get("message"))] for event in events]
    print_rows(["  TYPE", "REASON", "MESSAGE"], rows)


# -- version and api-resources


async def version(session: KubectlSession) -> int:
    print_lines(f"Client Version: built-in kubectl of argosy {__version__}")
    if not session.args.client:
        print_lines(f"Server: {session.server}")
    return 0


async def api_resources(session: KubectlSession) -> int:
    rows = [
        [info.plural, ",".join(info.short_names), join_api_version(kind.group, info.version),
         str(info.namespaced).lower(), kind.kind]
        for kind, info in sorted((await session.cluster.kinds()).items())
    ]  # fmt: skip
    print_rows(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], rows)
    return 0
