"""Slack service: messages in a channel, with attachments or blocks, in a thread or as an update.

In: a delivery. Out: calls to the Slack API. Never: stores more than the location of the last message of a group.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.errors import TransientError, UserError
from argosy.features.notifications.services.delivery import Delivery, json_part

API: Final = "https://slack.com/api/"
MOST_THREADS: Final = 1000
AGAIN: Final = frozenset({"ratelimited", "rate_limited", "service_unavailable", "internal_error", "fatal_error"})
_threads: dict[tuple[str, str], tuple[str, str]] = {}  # argo: lost at a restart; then a new thread starts


def send_slack(delivery: Delivery) -> None:
    said = delivery.part("slack")
    if not delivery.recipient:
        raise UserError("slack needs a channel as its recipient; subscribe with one")
    message = _message(delivery, said)
    group = (delivery.recipient, str(said.get("groupingKey") or ""))
    known = _threads.get(group) if group[1] else None
    policy = str(said.get("deliveryPolicy") or "Post")
    if known and policy in ("Update", "PostAndUpdate"):
        _call(delivery, "chat.update", {**message, "channel": known[0], "ts": known[1]})
        if policy == "Update":
            return
    if known:
        message |= {"thread_ts": known[1], "reply_broadcast": bool(said.get("notifyBroadcast"))}
    answer = _call(delivery, "chat.postMessage", {**message, "channel": delivery.recipient})
    if group[1] and not known:
        if len(_threads) >= MOST_THREADS:
            del _threads[next(iter(_threads))]
        _threads[group] = (str(answer.get("channel") or delivery.recipient), str(answer.get("ts") or ""))


def _message(delivery: Delivery, said: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"text": delivery.message}
    if name := str(said.get("username") or delivery.option("username")):
        message["username"] = name
    if icon := str(said.get("icon") or delivery.option("icon")):
        message["icon_emoji" if re.fullmatch(r":.+:", icon) else "icon_url"] = icon
    for part in ("attachments", "blocks"):
        if (found := json_part(str(said.get(part) or ""), f"slack.{part}")) is not None:
            message[part] = found
    if delivery.is_on("disableUnfurl"):
        message |= {"unfurl_links": False, "unfurl_media": False}
    return message


def _call(delivery: Delivery, method: str, message: dict[str, Any]) -> dict[str, Any]:
    url = delivery.option("apiURL", API).rstrip("/") + "/" + method
    headers = {"Authorization": f"Bearer {delivery.option('token')}"}
    answer = delivery.post_json(url, message, headers, "Slack").document()
    if not isinstance(answer, dict) or answer.get("ok") is not True:
        why = str(answer.get("error") if isinstance(answer, dict) else "no JSON")[:100]
        kind = TransientError if why in AGAIN else UserError
        raise kind(f"Slack refused the message for {delivery.recipient} ({why}); check the channel and the token")
    return answer
