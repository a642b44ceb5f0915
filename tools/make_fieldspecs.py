"""Makes the table of the fields that Kustomize's transformers touch by default.

    python tools/make_fieldspecs.py default-fieldspecs.json [--into FILE]

In: the field specifications as JSON. Out: a file of short rows, which gitops.render.kustomize.transformer_config reads.
A row is `path`, `kind`, `version`, `group`, `create`, cut where only empty ones follow.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "src/argosy/gitops/render/kustomize/data/fieldspecs.json"


def row(spec: dict[str, Any]) -> list[Any]:
    cells = [spec["path"], *(spec.get(name, "") for name in ("kind", "version", "group"))]
    cells.append(1 if spec.get("create") else 0)
    while not cells[-1]:
        cells.pop()
    return cells


def table(specs: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {
        name: [row(spec) for spec in listed] for name, listed in specs.items() if name != "nameReference"
    }
    rows["nameReference"] = [
        [[target.get(name, "") for name in ("group", "version", "kind")], [row(spec) for spec in target["fieldSpecs"]]]
        for target in specs["nameReference"]
    ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", type=Path)
    parser.add_argument("--into", type=Path, default=TABLE)
    args = parser.parse_args()
    args.into.write_text(json.dumps(table(json.loads(args.specs.read_text())), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
