"""Messages about Applications: what Argo CD's notifications controller sends, and what argosy sends.

Both have Argo CD's catalogue of triggers and templates, and the same settings; both receivers record the requests.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from argosy.kube.objects import Manifest
from support.argocd.comparison import find_differences
from support.argocd.known_differences import find_unexplained
from support.argocd.notification_controllers import NotificationControllers, run_notification_controllers
from support.argocd.pair import Pair, Side
from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

SUBSCRIBE: Final = "notifications.argoproj.io/subscribe"
NEVER_SENT: Final = re.compile(r":\[\d+\]\.[\w-]+:(:|nowhere:|teams:strangers)")
CATALOGUE: Final = ("created", "deployed", "health-degraded", "sync-failed", "sync-status-unknown", "sync-succeeded")
SECRETS: Final = {"chat-token": "a token", "password": "secret words"}
SETTINGS: Final = {
    "context": "argocdUrl: https://argocd.example.com\nteam: models\n",
    "service.webhook.plain": "url: {url}/plain",
    "service.webhook.form": """
        url: {url}/form/
        headers: [{name: X-Team, value: $chat-token}, {name: Content-Type, value: application/json}]
        basicAuth: {username: robot, password: $password}""",
    "service.slack": "{apiURL: '{url}/slack/', token: $chat-token, username: deliveries, icon: ':rocket:'}",
    "service.teams": "recipientUrls: {models: '{url}/teams/models', others: '{url}/teams/others'}",
    "subscriptions": "- {recipients: [plain], selector: 'team=models', triggers: [on-labelled, on-several]}",
    "defaultTriggers": "[on-labelled, on-several]",
    "defaultTriggers.form": "[on-fields]",
    "trigger.on-labelled": "[{when: \"app.metadata.labels?.team == 'models'\", send: [labelled]}]",
    "template.labelled": "message: '{{.app.metadata.name}} of {{.context.team}} to {{.recipient}}'",
    "trigger.on-several": """
      - {when: app.status.sync.status == 'Synced', send: [synced], oncePer: app.status.sync.revision}
      - {when: app.status.health.status == 'Healthy', send: [synced, labelled]}
      - {when: app.status.nowhere.deeper == 'x', send: [synced]}""",
    "template.synced": "message: '{{.app.metadata.name | upper}} is {{.app.status.sync.status}}'",
    "trigger.on-unknown": "[{when: app.status.sync.status == 'Unknown', send: [unknown]}]",
    "template.unknown": "message: '{{.app.metadata.name}} is Unknown: {{(index .app.status.conditions 0).type}}'",
    "trigger.on-fields": """
      - {when: "app.status.operationState?.phase in ['Succeeded']", send: [fields],
         oncePer: "app.status.operationState.syncResult.revision"}""",
    "template.fields": """
      webhook:
        form:
          method: PUT
          path: /{{.app.metadata.name}}/{{.serviceType}}
          body: |
            {"host": {{(call .repo.RepoURLToHTTPS "git@example.com:team/app.git") | toJson}},
             "name": {{toJson (call .repo.FullNameByRepoURL "https://example.com/team/app.git")}},
             "message": {{toJson (call .repo.GetCommitMetadata .app.status.sync.revision).Message}},
             "automated": {{.app.spec.syncPolicy.automated | toJson}},
             "token": {{index .secrets "chat-token" | toString | toJson}},
             "resources": [{{range $i, $r := .app.status.resources}}{{if $i}}, {{end}}"{{$r.kind}}"{{end}}],
             "words": "{{call .strings.ToUpper "loud"}} {{regexReplaceAll "[aeiou]" "vowels" "-"}}",
             "numbers": [{{printf "%05.2f" 3.14159}}, {{add 1 2}}], "none": "{{.app.status.nothing}}"}""",
}


@pytest.fixture(scope="module")
def controllers(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotificationControllers]:
    with run_notification_controllers(pair, tmp_path_factory.mktemp("messages"), SETTINGS, SECRETS) as started:
        yield started


def subscribe(*destinations: str, **recipients: str) -> dict[str, Any]:
    """Return metadata that subscribes to these triggers and services (`trigger.service`)."""
    annotations = {f"{SUBSCRIBE}.{name}": "" for name in destinations}
    return {"annotations": {**annotations, **{f"{SUBSCRIBE}.{name}": to for name, to in recipients.items()}}}


def subscribe_to_catalogue(service: str, recipient: str = "") -> dict[str, Any]:
    return {"annotations": {f"{SUBSCRIBE}.on-{trigger}.{service}": recipient for trigger in CATALOGUE}}


def push_settings(story: Story, **data: str) -> None:
    files: Mapping[str, Any] = {
        "settings.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
    }
    story.push(files)


def build_failing_job(annotations: Mapping[str, str]) -> Manifest:
    container = {"name": "fails", "image": "busybox", "command": ["sh", "-c", "exit 1"]}
    spec = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata = {"name": "fails", "annotations": dict(annotations)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def read_records(side: Side, application: str) -> list[str]:
    """Return the keys of the annotation where a controller records what it sent, except what it could not send.

    Argo CD also records what failed, and takes every other annotation for a subscription to the default triggers
    without a service, with the recipients of an annotation that it read before, in a random order.
    """
    annotations = side.list_applications()[application]["metadata"].get("annotations") or {}
    keys = json.loads(annotations.get("notified.notifications.argoproj.io", "{}"))
    return sorted(key for key in keys if not NEVER_SENT.search(key))


def check_messages(story: Story, controllers: NotificationControllers, last_message: str) -> None:
    story.pair.wait_until_quiet([story.name])
    controllers.wait_until_quiet(story.name, last_message)
    argocd, argosy = (dict(Counter(messages)) for messages in controllers.list_messages(story.name))
    records = (read_records(side, story.name) for side in story.pair.sides)
    differences = [
        *find_differences(f"messages about {story.name}", argocd, argosy),
        *find_differences(f"records of {story.name}", *records),
    ]
    unexplained = find_unexplained(f"notifications/{story.name}", differences)
    assert not unexplained, "\n".join(map(str, unexplained))


@pytest.mark.parametrize(("service", "recipient"), [("plain", ""), ("slack", "deliveries;models"), ("teams", "models")])
def test_messages_of_the_catalogue(
    story: Story, controllers: NotificationControllers, service: str, recipient: str
) -> None:
    push_settings(story, colour="blue")
    no_retry = {"retry": {"limit": 0}}
    story.deliver(automated={}, metadata=subscribe_to_catalogue(service, recipient), policy=no_retry)
    check_messages(story, controllers, "successfully synced")
    push_settings(story, colour="green")
    story.refresh()
    check_messages(story, controllers, "successfully synced")
    # Not an error that quotes a name: the catalogue puts messages into JSON as they are, which neither can send.
    story.push({"hook.yaml": build_failing_job({"argocd.argoproj.io/hook": "PreSync"})})
    push_settings(story, colour="red")
    story.refresh()
    check_messages(story, controllers, "has failed")


def test_message_about_a_source_that_cannot_be_rendered(story: Story, controllers: NotificationControllers) -> None:
    push_settings(story)
    story.deliver(source={"path": "nowhere"}, metadata=subscribe("on-unknown.plain"))
    check_messages(story, controllers, "Unknown")


def test_message_about_a_degraded_application(story: Story, controllers: NotificationControllers) -> None:
    story.push({"job.yaml": build_failing_job({})})
    story.deliver(automated={}, metadata=subscribe_to_catalogue("plain"))
    check_messages(story, controllers, "degraded")


def test_message_about_a_deletion(story: Story, controllers: NotificationControllers) -> None:
    push_settings(story)
    metadata = {
        **subscribe("on-deleted.plain"),
        "finalizers": ["resources-finalizer.argocd.argoproj.io", "example.com/keep"],
    }
    story.deliver(automated={}, metadata=metadata)
    story.delete_application()
    controllers.wait_until_quiet(story.name, "deleted")
    check_messages(story, controllers, "deleted")
    story.pair.patch_application(story.name, {"metadata": {"finalizers": None}})
    story.wait_until_deleted()


def test_messages_of_default_subscriptions(story: Story, controllers: NotificationControllers) -> None:
    push_settings(story)
    story.deliver(automated={}, metadata={"labels": {"team": "models"}})
    check_messages(story, controllers, "Synced")


def test_messages_with_own_triggers_and_fields(story: Story, controllers: NotificationControllers) -> None:
    push_settings(story)
    story.deliver(automated={"prune": True}, metadata=subscribe("form", "plain", "on-fields.nowhere", "unknown.plain"))
    check_messages(story, controllers, "Synced")


def test_messages_of_subscriptions_as_yaml(story: Story, controllers: NotificationControllers) -> None:
    push_settings(story)
    text = """
      - trigger: [on-several]
        destinations:
          - {service: teams, recipients: [models, others, strangers]}
          - {service: slack, recipients: [models]}
      - {destinations: [{service: plain, recipients: [""]}, {service: form}]}"""
    annotations = {"notifications.argoproj.io/subscriptions": text}
    story.deliver(automated={}, metadata={"annotations": annotations})
    check_messages(story, controllers, "is Synced")
