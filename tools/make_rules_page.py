"""Writes docs/reference/rules.md from the catalogue: `python tools/make_rules_page.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argosy.gitops.analysis.rules import CATALOGUE, FAMILIES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rules.md"
HEAD = """\
# Rules

```console
$ argosy check
overlays/dev/kustomization.yaml:11: AGY203 error: InferenceService/dev-fraud needs the runtime scikit, but the rendered name is dev-scikit; set runtime: dev-scikit; namePrefix and nameSuffix do not change this field
1 Application, 4 objects: 1 error, 0 warnings, 0 for information
next: argosy explain AGY203
```

`argosy check` renders every Application that it finds, as Argo CD would, and every kustomization that no Application names; then
it asks the rules below. No cluster is needed. A finding names the line of the base or overlay to edit. What cannot be looked
at (another repository, a chart of a chart repository, a kind without a definition) is named in a note, never passed over in
silence. A rule speaks only where it is sure; each says why.

The folder of a Helm chart that is named on the command line (`argosy check charts/fraud`) is rendered with its own values. A chart that is
only below a path, and that no Application names, is not rendered; a note names it. Kubeconfigs are searched in every file that Git tracks.

Which repository is this one? An address counts as this repository's if a remote of the clone has it, or if the path of one of
its Applications leads to a folder here and the clone comes from nowhere, or from a repository of the same name (a fork). An
Application with placeholders, such as `${BRANCH}`, is named in a note and not judged. What is read is the working tree, whatever branch an Application follows.

## What can be fixed at once

`argosy check --fix` edits the files where there is one cure and it is certain, says which line of which file it changed, and
checks again. Only those lines change: comments, quotes, indentation and the order of keys stay. It leaves alone what only a
human can decide, what is called otherwise in its file (by a prefix, or in a patch), and files with conflict markers. A rule that
can be fixed so says when.

## What is known already

- An annotation on the object, or on the Application: `argosy.dev/suppress: AGY113 until the move to 3.0`. Several rules are
  separated by commas. Without a reason nothing is excused, and a note says so.
- `check.suppress` in [argosy.yaml](argosy-yaml.md): a rule, a path (a folder, or a glob), and a reason.
- A baseline: `argosy check --baseline known.yaml --write-baseline` writes what there is now; later runs with `--baseline`, or
  with `check.baseline` in argosy.yaml, tell only what is new. Lines may move without harm.

## Rules about what lives

Rules with a 5 look at a cluster: [`argosy doctor`](doctor.md) asks them of an installation and its Applications, and they speak only
where what they read is certain. The others are asked by `argosy check`; those with a 4 by both, for checks may stand in Git or live.

## The catalogue

"""  # noqa: E501 - a page


def page() -> str:
    return HEAD + "\n".join(_table()) + "\n" + "".join(_sections())


def _table() -> Iterator[str]:
    yield "| rule | severity | |"
    yield "|---|---|---|"
    for rule in CATALOGUE.values():
        yield f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity} | {rule.title} |"


def _sections() -> Iterator[str]:
    family = ""
    for rule in CATALOGUE.values():
        if rule.id[3] != family:
            family = rule.id[3]
            yield f"\n## {FAMILIES[family]}\n"
        yield f"\n### {rule.id}\n\n**{rule.title}** ({rule.severity}). {rule.consequence}\n"
        yield f"\nWhy it is sure: {rule.certainty}\n\nWhat to do: {rule.fix}\n"
        if rule.automatic_fix:
            yield f"\n`argosy check --fix` does it, {rule.automatic_fix}.\n"


if __name__ == "__main__":
    PAGE.write_text(page())
