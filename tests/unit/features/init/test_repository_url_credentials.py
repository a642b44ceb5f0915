"""Repository URLs with credentials are rejected before they are committed."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.init.template_files import NewRepository
from argosy.gitops.application.url_credential_detection import has_credentials
from argosy.gitops.delivery_file.reader import read_delivery_file

FILE = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository: {{url: "{url}"}}
environments:
  dev: {{application: a-dev, path: dev}}
"""
SECRET = [
    "https://ada:of-a-test@example.com/r.git",
    "HTTPS://ada:of-a-test@example.com/r.git",
    "https://of-a-test@example.com/r.git",
    "Http://of-a-test@example.com/r.git",
    "ssh://git:of-a-test@example.com/r.git",
    "SSH://git:of-a-test@example.com:2222/r.git",
    "git+ssh://git:of-a-test@example.com/r.git",
    "https://ada:of-a-t@est@example.com/r.git",
    "https://ada:of/a-test@example.com/r.git",
    "ssh://git:of-a-test@[::1]/r.git",
    "ada:of-a-test@example.com:r.git",
]
OPEN = [
    "https://example.com/r.git",
    "https://example.com:8443/@team/r.git",
    "https://[::1]:8443/@team/r.git",
    "ssh://git@example.com:2222/r.git",
    "git@example.com:team/r.git",
    "file:///srv/r@2.git",
]


@pytest.mark.parametrize("url", SECRET)
def test_repository_url_with_credentials_is_rejected_and_not_echoed(url: str) -> None:
    assert has_credentials(url)
    with pytest.raises(UserError, match="would be committed") as init:
        NewRepository("fraud", url).validate()
    with pytest.raises(UserError, match="would be committed") as setup:
        read_delivery_file(FILE.format(url=url))
    assert "test" not in str(init.value) + str(setup.value)


@pytest.mark.parametrize("url", OPEN)
def test_repository_url_without_credentials_is_accepted(url: str) -> None:
    assert not has_credentials(url)
    assert read_delivery_file(FILE.format(url=url)).repository.url == url
