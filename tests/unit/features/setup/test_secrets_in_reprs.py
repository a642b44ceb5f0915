"""Tests that the repr of values, as in tracebacks and logs, contains no secret."""

from __future__ import annotations

from argosy.features.setup.delivery.cluster_setup_plan import SetupRequest
from argosy.features.setup.gitea_admin_secrets import GiteaCredentials, read_credentials
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, DeliveryFile, DeliveryRepository

SECRET = "of-a-test"


def test_gitea_credentials_repr_shows_user_but_no_password() -> None:
    gitea = {"spec": {"giteaAdminUser": "ada"}, "status": {"adminPassword": SECRET}}
    credentials = read_credentials(gitea)
    assert isinstance(credentials, GiteaCredentials) and credentials.password == SECRET
    assert "ada" in repr(credentials)
    assert SECRET not in f"{credentials!r} {credentials} {[credentials]}"


def test_setup_request_repr_hides_secret_values() -> None:
    delivery = DeliveryFile(
        DeliveryRepository("https://example.com/r.git"), (DeliveryEnvironment("dev", "a-dev", "a-dev", "dev"),)
    )
    request = SetupRequest(delivery, values={"password": SECRET})
    assert SECRET not in f"{request!r} {request}"
