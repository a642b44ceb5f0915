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

`argosy check` renders every Application that it finds, as Argo CD would, and every kustomization that no Application uses, and
then applies the rules below. It needs no cluster. A finding names the line of the base or overlay to edit. A note lists what
cannot be checked: another repository, a chart from a chart repository, a kind without a definition. A rule reports only what is
certain, and each rule says why it is certain.

A Helm chart's folder that is given on the command line (`argosy check charts/fraud`) is rendered with the chart's own values. A chart
that is only below a given path, and that no Application uses, is not rendered; a note names it. Kubeconfigs are searched for in
every file that Git tracks.

A repository URL counts as this repository if a remote of the clone has it. It also counts if the path of one of its Applications is a
folder here, and the clone has no remote or a remote with the same repository name (a fork). An Application with placeholders, such as
`${BRANCH}`, is named in a note and not checked. argosy reads the working tree, whatever branch an Application follows.

## Automatic fixes

`argosy check --fix` edits the files where there is exactly one certain fix, prints the line of each file that it changed, and checks
again. Only those lines change: comments, quotes, indentation and the order of keys stay. It does not change what a person must
decide, what has a different name in its file (through a prefix or a patch), or files with conflict markers. The description of a
rule says whether and when it can be fixed automatically.

## Suppressing findings

- An annotation on the object, or on the Application: `argosy.dev/suppress: AGY113 until the move to 3.0`. Separate several rules
  with commas. Without a reason nothing is suppressed, and a note says so.
- `check.suppress` in [argosy.yaml](argosy-yaml.md): a rule, a path (a folder, or a glob), and a reason.
- A baseline: `argosy check --baseline known.yaml --write-baseline` writes the current findings to a file; later runs with `--baseline`, or
  with `check.baseline` in argosy.yaml, report only new findings. A finding is recognized even if its line number changes.

## Rules for live state

Rules with the first digit 5 read a cluster: [`argosy doctor`](doctor.md) applies them to an installation and its Applications, and they
report only what is certain from what could be read. `argosy check` applies all other rules. Both apply the rules with the first digit
4, because health checks can be in Git or in a cluster.

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
        yield f"\nKnown because: {rule.certainty}\n\nWhat to do: {rule.fix}\n"
        if rule.automatic_fix:
            yield f"\n`argosy check --fix` does it, {rule.automatic_fix}.\n"


if __name__ == "__main__":
    PAGE.write_text(page())
