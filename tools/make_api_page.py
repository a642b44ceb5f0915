"""Writes docs/reference/api.md from the table of routes: `python tools/make_api_page.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argosy.features.serve.routes import build_route_table
from argosy.web.api.openapi import describe_access, get_tag
from argosy.web.route import Route
from argosy.web.server_audit_counters_and_limits import ServerState

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
HEAD = """\
# The REST API

```console
$ argosy serve
$ curl -s -H "Authorization: Bearer $TOKEN" http://localhost:8484/api/v1/applications?fields=items.metadata.name
{"items":[{"metadata":{"name":"guestbook"}}]}
```

`argosy serve` and `argosy demo` serve Argo CD's REST API, with the same paths and formats, so that tools written for it work. argosy's own
routes are under `/api/argosy/v1`. `/api/openapi.json` and `/swagger.json` are the specification for programs, `/api/docs` is the page
for people. The tables under [all routes](#all-routes) are generated from the same routes.

## Authentication and permissions

Send a token as `Authorization: Bearer`. The token comes from `POST /api/v1/session` with a username and a password, from an account, or
from a project role. `argocd-rbac-cm` defines its permissions, in Argo CD's format. Each route below names the resource and the action
that it requires on the named object. A list contains only what the caller may see. The response for an object that does not exist and for
one that is forbidden is the same, to the byte:

| code | `code` in the document | means |
|---|---|---|
| 400 | 3 | the request is invalid; the message says what to send instead |
| 400 | 2 | the same, where Argo CD's error has no code: manifests that cannot be rendered, a failed action, an unreadable patch, a new repository without connection, a GPG key that is not there |
| 400 | 9 | not possible now: another operation is running, or automated sync would undo the change |
| 400 | 12 | Argo CD supports this, argosy does not |
| 401 | 16 | the caller is not authenticated |
| 403 | 7 | permission denied, or the object does not exist |
| 404 | 5 | the object does not exist, and the caller may know that |
| 409 | 10 | write conflict: the object was changed in the meantime |
| 413, 429 | 8 | the request is too large, or there are too many requests |
| 503 | 14 | the cluster does not respond; try again |

Every error is `{"error": …, "code": …, "message": …}`.

Every mutating request, also a rejected one, writes a line to the log `argosy.audit` and to `audit.log` of the server's folder: the caller,
the action, the object and the result. The line of a login names the account, and a change of several Applications writes a line for each.
A GET that requests a refresh is logged, too. Request bodies are never logged.

## Lists

`fields=items.metadata.name,items.status` returns only these fields, `fields=-items.spec` all fields except these. Lists under
`/api/argosy/v1` are paginated: `limit` (default 100, at most 1000), and `continue` with the token of the previous page.

## Applications

A write is visible to the next read. A body may name the Application, its namespace and its project; if they differ from the URL,
the request is rejected. argosy takes the spec, labels, annotations and finalizers of a submitted Application, and ignores its status.

Moving an Application to another project requires `create` and `update` there, too; the target project must permit the Application,
regardless of `validate`. An `operation` in a created Application requires `sync`. Single objects can be read, patched, deleted
and acted on if they are in the Application's tree **and** its project permits them.

| | |
|---|---|
| `refresh=normal`, `refresh=hard` | responds when the engine has compared the Application again, within 45 s |
| `POST …/sync` with `manifests` | syncs these [local manifests](syncing.md#local-manifests), JSON texts of at most 640 KiB together; requires `override`, too, and with automated sync `dryRun` |
| `…/server-side-diff` | compares the manifests in Git; other manifests in the request are rejected |
| `…/logs` | lines of JSON (`application/x-ndjson`; `application/json` for clients that request it), or server-sent events; timestamps are those at which the server read a line; `untilTime` is rejected |
| `manifestsWithFiles` | renders [files that are sent](#grpc): a JSON document per line, the first with `query`, the others with `chunk`, a piece of a gzip-compressed tar archive |
| `…/chartdetails`, `…/ocimetadata` | rejected |

## Secrets

Repositories, credential templates and clusters are Secrets in Argo CD's format (label `argocd.argoproj.io/secret-type`). Argo CD and
`kubectl` can read what is declared here, and argosy can read what they declare. Responses have no field for a password, key or token: each
response format is an allowlist of fields.

On an update, secrets that are not sent are kept, unless they could then be sent elsewhere (another proxy, weaker host verification, another
type), or the user name is removed. In these cases they are dropped and must be sent again. The address itself cannot be changed: the
address in the path is the one that is written.

## Webhooks

`POST /api/webhook` accepts push events from GitHub, GitLab, Gitea, Forgejo, Gogs, Bitbucket and Bitbucket Server, at most 5 MiB each and
ten a second from one address. argosy refreshes the Applications that follow what was pushed, each at most once in ten seconds. A refresh
that comes too early runs when the ten seconds are over. A pending hard refresh stays hard, even if a normal refresh is requested.

Once `argocd-secret` has a webhook secret of any host (`webhook.github.secret` and so on), unsigned events are rejected, including those of
hosts without a secret. A repeated delivery has no effect.

## Badges

`GET /api/badge?name=guestbook` is an image of health and sync status. `revision=true` and `showAppName=true` add the revision and the name,
`project=team` shows the worst status of a project, `keepFullRevision=true` shows the full revision, and `width=300` sets the width. Unless
`statusbadge.enabled` in `argocd-cm` is `"true"`, the badge is always Unknown.

## gRPC

The `argocd` command and Terraform's provider speak gRPC. The server takes their calls on the same port as all others, as gRPC over HTTP/2
and as gRPC-Web: all methods of the services of Argo CD 3.5.6, at `POST /package.Service/Method` with the content type `application/grpc`
or `application/grpc-web+proto`. Each method is the route of this page that Argo CD's `.proto` files name for it, so authentication,
permissions, limits, masking and the audit log are the same; the audit log names that route.

```console
$ argocd login argosy.example.com
$ argocd app list
```

| | |
|---|---|
| HTTP/2 | over TLS with ALPN `h2`; on a loopback address without TLS, with prior knowledge (`--plaintext`). A client that offers both protocols gets HTTP/1.1. Other requests over HTTP/2 than gRPC get 505 |
| `--grpc-web`, `grpc_web = true` | for a proxy that does not pass HTTP/2 on. Client streams need HTTP/2 |
| token | in the metadata `token`, as Argo CD's command sends it, else `Authorization: Bearer`, else the cookie of the page |
| errors | HTTP 200 with `grpc-status` and `grpc-message` in the trailers, and over gRPC-Web also in the headers if no message was sent: the `code` of the table above. `13` also means a message that cannot be decoded |
| `grpc-timeout` | ends a call or a stream with `4` |
| compressed messages, `application/grpc-web-text` | are rejected |
| calls from pages of other origins | are rejected, as for every route |
| `app diff --local --server-side-generate` | needs HTTP/2: over gRPC-Web, Argo CD's command sends the first message only. The files are rendered as if they were in the Application's first source; it needs `applications, get`. Remote bases and charts are not fetched for them, a plug-in gets no Git credentials, links must stay within the files, and each diff counts as a preview of another revision: see [limits](limits.md#requests-to-the-page-and-its-api) |
| `app diff --server-side-diff` | compares the Application's own manifests only; those of another revision or of `--local` are rejected |

## Not supported

- OCI registries: `oci-tags` is rejected. Charts are read from Git and from Helm repositories.
- ApplicationSet generators: ApplicationSets are stored and returned, `generate` is rejected, and no Applications are created from them.
- Terminals (`/terminal`), extensions and Dex.

## All routes

"""  # noqa: E501 - a page


def page() -> str:
    return HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    """argosy's own last; each group in the order of its paths."""
    routes = sorted(
        (route for route in build_route_table(ServerState()).routes if route.is_api),
        key=lambda route: (_group(route), route.path, route.method),
    )
    group = ""
    for route in routes:
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
