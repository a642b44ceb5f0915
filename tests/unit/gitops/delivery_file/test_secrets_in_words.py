"""What a traceback or a log would show of a value holds no secret."""

from __future__ import annotations

from argosy.features.setup.delivery.plan import SetupRequest
from argosy.features.setup.gitea_admin_secrets import GiteaCredentials, read_credentials
from argosy.gitops.delivery_file.values import DeliveryEnvironment, DeliveryFile, DeliveryRepository

SECRET = "of-a-test"


def test_credentials_of_gitea_show_who_and_no_password() -> None:
    gitea = {"spec": {"giteaAdminUser": "ada"}, "status": {"adminPassword": SECRET}}
    credentials = read_credentials(gitea)
    assert isinstance(credentials, GiteaCredentials) and credentials.password == SECRET
    assert "ada" in repr(credentials)
    assert SECRET not in f"{credentials!r} {credentials} {[credentials]}"


def test_a_request_shows_no_value_of_the_repositorys_secret() -> None:
    delivery = DeliveryFile(
        DeliveryRepository("https://example.com/r.git"), (DeliveryEnvironment("dev", "a-dev", "a-dev", "dev"),)
    )
    request = SetupRequest(delivery, values={"password": SECRET})
    assert SECRET not in f"{request!r} {request}"
