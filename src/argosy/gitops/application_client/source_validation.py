"""Validates that the sources of an Application render, before it is stored.

In: an ApplicationReader, an Application that its project permits. Out: nothing, or a UserError. Never: keeps the
render; refuses an Application because a host or a worker is not available now.
"""

from __future__ import annotations

import asyncio
from typing import Final

from argosy.errors import (
    CorruptSource,
    LimitError,
    NoMatchingFile,
    RenderError,
    SignatureError,
    SourceError,
    SourceTooLarge,
    SourceUnreachable,
    TransientError,
    UnknownRef,
    UnnamedSubmodule,
    UserError,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader

MAX_SECONDS: Final = 30.0  # later errors are left to the controller
# the host answers, and lets us in
_BEYOND_ACCESS: Final = (UnknownRef, CorruptSource, SourceTooLarge, UnnamedSubmodule, SignatureError)


async def check_sources_render(reader: ApplicationReader, app: Application) -> None:
    """argo: refuse an Application whose repository cannot be read, or whose path does not exist or does not render.

    argo: a revision that is not signed as required, and a glob that matches no file, are accepted: a later commit may
    mend them. The controller reports both, and applies nothing.
    """
    if not app.sources:
        return
    try:
        async with asyncio.timeout(MAX_SECONDS):
            await reader.without_render_cache().render_desired_state(app, reports_unverified=True)
    except (SourceUnreachable, TransientError, TimeoutError, NoMatchingFile):
        return
    except (RenderError, *_BEYOND_ACCESS) as error:
        paths = ", ".join(source.path or source.chart or "." for source in app.sources)
        raise _build_error(app, f"Unable to generate manifests in {paths}: {error}") from error
    except SourceError as error:
        raise _build_error(app, f"repository not accessible: {error}") from error
    except LimitError as error:
        if not error.exhaustion_reason:
            raise _build_error(app, str(error)) from error
    except UserError as error:
        raise _build_error(app, str(error)) from error


def _build_error(app: Application, message: str) -> UserError:
    return UserError(f"application spec for {app.name} is invalid: InvalidSpecError: {message}")
