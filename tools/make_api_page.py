"""Writes docs/reference/api.md from the table of routes: `python tools/make_api_page.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argosy.web.api.openapi import describe_access, get_tag
from argosy.web.route import Route
from argosy.web.route_table import ROUTE_TABLE

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
HEAD = """\
# The REST API

```console
$ argosy serve
$ curl -s -H "Authorization: Bearer $TOKEN" http://localhost:8484/api/v1/applications?fields=items.metadata.name
{"items":[{"metadata":{"name":"guestbook"}}]}
```

`argosy serve` and `argosy demo` answer under Argo CD's paths, in Argo CD's shapes, so that tools written for its REST API work; what
is argosy's own is under `/api/argosy/v1`. `/api/openapi.json` and `/swagger.json` are the document for programs, `/api/docs` is the page
for people. The table below is made from the same routes.

## Who may

Send a token as `Authorization: Bearer`: one of `POST /api/v1/session` for a name and a password, one of an account, or one of a role of
a project. `argocd-rbac-cm` says what it may, in Argo CD's words. Each route below says what it needs: a resource and an action, of the
object that it names. A list gives only what the caller may see. What is absent and what is forbidden is the same answer, to the byte:

| code | `code` in the document | means |
|---|---|---|
| 400 | 3 | what was sent cannot be done; the message says what to write instead |
| 400 | 9 | not now: another operation runs, or automated sync would undo it |
| 400 | 12 | Argo CD has it, and argosy has not |
| 401 | 16 | nobody has shown who they are |
| 403 | 7 | it is not permitted, or it is not there |
| 409 | 10 | somebody else changed it first |
| 413, 429 | 8 | too much at once |
| 503 | 14 | the cluster does not answer; try again |

Every error is `{"error": …, "code": …, "message": …}`. Everything that changes something leaves a line in the log `argosy.audit`
and in `audit.log` of the server's folder: who, what, which object and what came of it; a sign-in says whose, and a change of several
Applications is a line for each. A refresh that is asked for by a GET is one, too. Never what was sent.

## Lists

`fields=items.metadata.name,items.status` gives these parts alone, `fields=-items.spec` all but those. Lists under `/api/argosy/v1` have
pages: `limit` (100, at most 1000), and `continue` with the token of the page before.

## Applications

What is written can be read at once. A body may name the Application, its namespace and its project; where it names others than the
address does, it is refused. Of an Application that is sent the spec, labels, annotations and finalizers count, and no status. Who moves
one to another project needs `create` and `update` there, too; whatever `validate` says, its project has to permit it. An `operation` in
what is created needs `sync`. Single objects can be read, patched, deleted and acted on where they are in the Application's tree **and**
its project permits them.

| | |
|---|---|
| `refresh=normal`, `refresh=hard` | answered when the engine has compared it anew, within 45 s |
| `POST …/sync` with `manifests` | refused, after `override` was asked for: what is delivered must be in Git |
| `…/server-side-diff` | compares what Git has; manifests that are sent are refused |
| `…/logs` | lines of JSON (`application/x-ndjson`; `application/json` to who asks for that), or server-sent events; times are those at which the server read a line; `untilTime` is refused |
| `…/chartdetails`, `…/ocimetadata`, `manifestsWithFiles` | refused |

## Secrets

Repositories, templates of credentials and clusters are Secrets in Argo CD's form (label `argocd.argoproj.io/secret-type`), so
Argo CD and `kubectl` can read what is declared here, and the other way round. An answer has no field for a password, key or token:
the shapes are lists of what may be told. On an update, secrets that are not sent stay, unless they would go elsewhere: another proxy,
a host that is checked less, another type. Then they are dropped, and are to be sent again. The address itself cannot be changed: the
one in the path is the one that is written.

## Webhooks

`POST /api/webhook` takes pushes of GitHub, GitLab, Gitea, Forgejo, Gogs, Bitbucket and Bitbucket Server, at most 5 MiB each and ten a
second from one address. The Applications that follow what was pushed are refreshed, each at most once in ten seconds; a refresh that
comes too early is done when its time has come, and a hard one that waits stays hard, whoever asks for a normal one.
Once `argocd-secret` has a secret of any host (`webhook.github.secret` and so on),
whatever is not signed is refused, also of hosts without one. The same delivery once more does nothing.

## Badges

`GET /api/badge?name=guestbook` is a picture of health and sync; `revision=true` and `showAppName=true` add to it, `project=team` is the
worst of a project. `keepFullRevision=true` keeps all digits, `width=300` draws it so wide. Unless `statusbadge.enabled` in `argocd-cm` is
`"true"`, it says Unknown of everything.

## What Argo CD has and argosy has not

- Chart repositories and registries: `helmcharts` and `oci-tags` are refused. Charts are read from Git.
- Generators of ApplicationSets: they are kept and told of, `generate` is refused, and no Applications come of them.
- Terminals (`/terminal`), extensions and Dex.
- gRPC: tools that speak it (the `argocd` command, Terraform's provider) cannot connect; use [`argosy app`](cli.md) and REST.

## All routes

"""  # noqa: E501 - a page


def page() -> str:
    return HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    """argosy's own last; each group in the order of its paths."""
    shown = sorted(
        (route for route in ROUTE_TABLE if route.is_api), key=lambda route: (_group(route), route.path, route.method)
    )
    group = ""
    for route in shown:
        if _group(route)[1] != group:
            group = _group(route)[1]
            yield f"\n### {group}\n\n| route | needs | |\n|---|---|---|\n"
        yield f"| `{route.method} {route.path.replace('*}', '}')}` | {describe_access(route)} | {_about(route)} |\n"


def _group(route: Route) -> tuple[bool, str]:
    is_own = route.path.startswith("/api/argosy/")
    tag = get_tag(route).removesuffix("Service").lower()
    return is_own, f"argosy: {tag}" if is_own else tag


def _about(route: Route) -> str:
    return route.summary.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
