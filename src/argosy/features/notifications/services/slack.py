"""Slack service: messages in a channel, with attachments or blocks, in a thread or as an update.

In: a delivery. Out: calls to the Slack API. Never: stores more than the location of the last message of a group.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.errors import TransientError, UserError
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery, parse_json_field

SLACK_API_URL: Final = "https://slack.com/api/"
MAX_REMEMBERED_THREADS: Final = 1000
RETRY_ERRORS: Final = frozenset({"ratelimited", "rate_limited", "service_unavailable", "internal_error", "fatal_error"})
_threads: dict[tuple[str, str], tuple[str, str]] = {}  # argo: lost at a restart; then a new thread starts


def send_slack(delivery: MessageDelivery) -> None:
    fields = delivery.get_template_fields("slack")
    if not delivery.recipient:
        raise UserError("slack needs a channel as its recipient; subscribe with one")
    message = _build_message(delivery, fields)
    group = (delivery.recipient, str(fields.get("groupingKey") or ""))
    thread = _threads.get(group) if group[1] else None
    policy = str(fields.get("deliveryPolicy") or "Post")
    if thread and policy in ("Update", "PostAndUpdate"):
        _call_api(delivery, "chat.update", {**message, "channel": thread[0], "ts": thread[1]})
        if policy == "Update":
            return
    if thread:
        message |= {"thread_ts": thread[1], "reply_broadcast": bool(fields.get("notifyBroadcast"))}
    answer = _call_api(delivery, "chat.postMessage", {**message, "channel": delivery.recipient})
    if group[1] and not thread:
        if len(_threads) >= MAX_REMEMBERED_THREADS:
            del _threads[next(iter(_threads))]
        _threads[group] = (str(answer.get("channel") or delivery.recipient), str(answer.get("ts") or ""))


def _build_message(delivery: MessageDelivery, fields: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"text": delivery.message}
    if name := str(fields.get("username") or delivery.get_option("username")):
        message["username"] = name
    if icon := str(fields.get("icon") or delivery.get_option("icon")):
        message["icon_emoji" if re.fullmatch(r":.+:", icon) else "icon_url"] = icon
    for part in ("attachments", "blocks"):
        if (parsed := parse_json_field(str(fields.get(part) or ""), f"slack.{part}")) is not None:
            message[part] = parsed
    if delivery.is_enabled("disableUnfurl"):
        message |= {"unfurl_links": False, "unfurl_media": False}
    return message


def _call_api(delivery: MessageDelivery, method: str, message: dict[str, Any]) -> dict[str, Any]:
    url = delivery.get_option("apiURL", SLACK_API_URL).rstrip("/") + "/" + method
    headers = {"Authorization": f"Bearer {delivery.get_option('token')}"}
    answer = delivery.post_json(url, message, headers, "Slack").read_json()
    if not isinstance(answer, dict) or answer.get("ok") is not True:
        reason = str(answer.get("error") if isinstance(answer, dict) else "no JSON")[:100]
        error_class = TransientError if reason in RETRY_ERRORS else UserError
        raise error_class(
            f"Slack refused the message for {delivery.recipient} ({reason}); check the channel and the token"
        )
    return answer
