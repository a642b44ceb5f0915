"""What a traceback or a log would show of a value holds no secret."""

from __future__ import annotations

from argosy.features.setup.delivery.plan import Request
from argosy.features.setup.gitea import Credentials, credentials_of
from argosy.gitops.delivery_file.values import Delivery, Environment, Repository

SECRET = "of-a-test"


def test_credentials_of_gitea_show_who_and_no_password() -> None:
    gitea = {"spec": {"giteaAdminUser": "ada"}, "status": {"adminPassword": SECRET}}
    found = credentials_of(gitea)
    assert isinstance(found, Credentials) and found.password == SECRET
    assert "ada" in repr(found)
    assert SECRET not in f"{found!r} {found} {[found]}"


def test_a_request_shows_no_value_of_the_repositorys_secret() -> None:
    delivery = Delivery(Repository("https://example.com/r.git"), (Environment("dev", "a-dev", "a-dev", "dev"),))
    request = Request(delivery, values={"password": SECRET})
    assert SECRET not in f"{request!r} {request}"
