"""The verbs `get` and `describe`: print objects as server-side tables, JSON, YAML, names or templates.

In: KubectlSession. Out: printed text. Never: writes to the cluster.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.errors import ClusterError, UserError
from argosy.features.kubectl.jsonpath import filled, shown
from argosy.features.kubectl.session import Refused, Talk, not_found, say
from argosy.kube.client.resource_names import Named
from argosy.kube.objects import Manifest, dump
from argosy.kube.schema.jsonpath import compiled

Row = tuple[Manifest, list[str]]


async def get(talk: Talk) -> int:
    named = await talk.named()
    if talk.asked.output in ("", "wide"):
        return await _get_tables(talk, named)
    found = [manifest async for _, manifest in _present(talk, named)]
    if path := talk.asked.sort_by:
        found.sort(key=lambda manifest: _order(manifest, path))
    is_one = len(found) == 1 and len(named) == 1 and len(named[0].names) == 1
    _print(talk, found, is_one=is_one, kinds=named)
    return 0


async def _present(talk: Talk, named: Sequence[Named]) -> Any:
    try:
        async for each in talk.chosen(named):
            yield each
    except ClusterError as error:
        if not (talk.asked.ignore_not_found and error.code == 404):
            raise


def _order(manifest: Manifest, path: str) -> tuple[bool, float, str]:
    value = compiled(path).first(manifest)
    is_number = isinstance(value, int | float)
    return value is None, float(value) if is_number else 0.0, "" if is_number else shown(value)


def _print(talk: Talk, found: list[Manifest], *, is_one: bool, kinds: Sequence[Named]) -> None:
    output = talk.asked.output
    form, _, rest = output.partition("=")
    whole: Any = found[0] if is_one else {
        "apiVersion": "v1", "items": found, "kind": "List", "metadata": {"resourceVersion": ""}
    }  # fmt: skip
    match form:
        case "json":
            say(json.dumps(_plain(whole), indent=4, ensure_ascii=False, sort_keys=True))
        case "yaml":
            sys.stdout.write(dump(_plain(whole)))
        case "name":
            by_kind = {each.kind.kind: each for each in kinds}
            say(*(by_kind[each["kind"]].called(each["metadata"]["name"]) for each in found))
        case "jsonpath" if rest:
            sys.stdout.write(filled(rest, whole))
        case "custom-columns" if rest:
            columns = [column.partition(":") for column in _columns(rest)]
            rows = [[_cell(path, each) for _, _, path in columns] for each in found]
            print_rows([] if talk.asked.no_headers else [name for name, _, _ in columns], rows)
        case _:
            known = "json, yaml, name, wide, jsonpath=…, custom-columns=…"
            raise UserError(f"output format {output!r} is not supported; use {known}, or install kubectl", where="-o")


def _columns(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _cell(path: str, manifest: Manifest) -> str:
    return ",".join(map(shown, compiled(path).find(manifest))) or "<none>"


def _plain(value: Any) -> Any:
    """k8s: managedFields are not shown."""
    if isinstance(value, dict) and "items" in value and value.get("kind") == "List":
        return {**value, "items": [_plain(each) for each in value["items"]]}
    metadata = {name: each for name, each in value.get("metadata", {}).items() if name != "managedFields"}
    return {**value, "metadata": metadata}


# -- tables


async def _get_tables(talk: Talk, named: Sequence[Named]) -> int:
    several = len({each.kind for each in named}) > 1
    printed = code = 0
    for each in named:
        columns, rows, problems = await _table(talk, each)
        code = code or int(bool(problems))
        if talk.asked.sort_by:
            rows.sort(key=lambda row: _order(row[0], talk.asked.sort_by))
        if rows:
            if printed:
                say("")
            _print_table(talk, each, columns, rows, several=several)
            printed += len(rows)
        for problem in problems:
            print(f"Error from server ({problem.reason}): {problem.message}", file=sys.stderr, flush=True)
    if not printed and not code and not talk.asked.ignore_not_found:
        has_namespace = any(talk.where(each) for each in named)
        where = f" in {talk.namespace} namespace." if has_namespace else ""
        print(f"No resources found{where}", file=sys.stderr)
    if talk.asked.watch:
        await _watch(talk, named)
    return code


async def _table(talk: Talk, named: Named) -> tuple[list[Mapping[str, Any]], list[Row], list[ClusterError]]:
    columns: list[Mapping[str, Any]] = []
    rows: list[Row] = []
    problems: list[ClusterError] = []
    for name in named.names or ("",):
        try:
            table = await talk.cluster.table(
                named.kind, namespace=talk.where(named), name=name, labels=talk.asked.selector,
                fields=talk.asked.field_selector,
            )  # fmt: skip
        except ClusterError as error:
            missing = error.code == 404 and name
            if not (missing and talk.asked.ignore_not_found):
                problems.append(not_found(named, name) if missing else error)
            continue
        columns = table["columnDefinitions"]
        rows += [(row["object"], [_text(cell) for cell in row["cells"]]) for row in table.get("rows") or ()]
    if problems and not named.names:
        raise problems[0]
    return columns, rows, problems


def _text(cell: Any) -> str:
    return "<none>" if cell is None or cell == "" else shown(cell).replace("\n", "\\n")


def _print_table(
    talk: Talk, named: Named, columns: Sequence[Mapping[str, Any]], rows: Sequence[Row], *, several: bool = False,
    headers: bool = True,
) -> None:  # fmt: skip
    kept = [at for at, column in enumerate(columns) if not column.get("priority") or talk.asked.output == "wide"]
    head = [str(columns[at]["name"]).upper() for at in kept]
    cells = [[row[at] for at in kept] for _, row in rows]
    if several:
        for row in cells:
            row[0] = named.called(row[0])
    if talk.asked.all_namespaces and named.info.namespaced:
        head.insert(0, "NAMESPACE")
        for (manifest, _), row in zip(rows, cells, strict=True):
            row.insert(0, manifest["metadata"].get("namespace") or "")
    if talk.asked.show_labels:
        head.append("LABELS")
        for (manifest, _), row in zip(rows, cells, strict=True):
            labels = manifest["metadata"].get("labels") or {}
            row.append(",".join(f"{name}={labels[name]}" for name in sorted(labels)) or "<none>")
    print_rows(head if headers and not talk.asked.no_headers else [], cells)


def print_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    everything = [*([head] if head else []), *rows]
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    for row in everything:
        say("   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


async def _watch(talk: Talk, named: Sequence[Named]) -> None:
    if len(named) != 1:
        raise Refused("you may only watch a single kind")
    each = named[0]
    where = talk.where(each)
    since = (await talk.cluster.list(each.kind, namespace=where, labels=talk.asked.selector)).version
    async for event in talk.cluster.watch(each.kind, since=since, namespace=where, labels=talk.asked.selector):
        name = event.manifest["metadata"].get("name")
        if event.type in ("ADDED", "MODIFIED") and (not each.names or name in each.names):
            own = Named(each.kind, each.info, (name,))
            columns, rows, _ = await _table(talk, own)
            if rows:
                _print_table(talk, each, columns, rows, headers=False)


# -- describe


async def describe(talk: Talk) -> int:
    """Print a short description: metadata, the other fields as YAML, and Events."""
    first = True
    async for named, manifest in talk.chosen(await talk.named()):
        if not first:
            say("")
        first = False
        metadata = manifest["metadata"]
        say(f"Name:         {metadata['name']}")
        if named.info.namespaced:
            say(f"Namespace:    {metadata['namespace']}")
        for title, field in (("Labels", "labels"), ("Annotations", "annotations")):
            pairs = [f"{name}={value}" for name, value in sorted((metadata.get(field) or {}).items())] or ["<none>"]
            say(f"{title + ':':<13} {pairs[0]}", *(f"{'':<13} {pair}" for pair in pairs[1:]))
        kept = {name: each for name, each in manifest.items() if name not in ("metadata", "apiVersion", "kind")}
        say(f"Kind:         {manifest['kind']} ({manifest['apiVersion']})", dump(kept).rstrip())
        await _events(talk, manifest)
    return 0


async def _events(talk: Talk, manifest: Manifest) -> None:
    from argosy.kube.names import GroupKind

    fields = f"involvedObject.uid={manifest['metadata'].get('uid')}"
    namespace = manifest["metadata"].get("namespace") or "default"
    found = (await talk.cluster.list(GroupKind("", "Event"), namespace=namespace, fields=fields)).items
    if not found:
        say("Events:       <none>")
        return
    say("Events:")
    rows = [[f"  {each.get('type')}", str(each.get("reason")), str(each.get("message"))] for each in found]
    print_rows(["  TYPE", "REASON", "MESSAGE"], rows)
