"""Email service. In: a delivery. Out: a mail accepted by the SMTP server. Never: sends a password without TLS."""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.notifications.services.service_message_http_requests import MessageDelivery
from argosy.http_client.smtp import Mail, MailServer, send_mail


def send_email(delivery: MessageDelivery) -> None:
    host, port = delivery.get_option("host"), delivery.get_option("port", "25")
    if not host or not port.isdecimal():
        raise UserError(f"service.email.{delivery.service} needs host and port; set both")
    if not delivery.recipient:
        raise UserError("email needs an address as its recipient; subscribe with one")
    fields = delivery.get_template_fields("email")
    server = MailServer(
        host,
        int(port[:5]),
        delivery.get_option("username"),
        delivery.get_option("password"),
        insecure=delivery.is_enabled("insecure_skip_verify", "insecureSkipVerify"),
    )
    mail = Mail(
        delivery.get_option("from") or delivery.get_option("username"),
        delivery.recipient,
        str(fields.get("subject") or ""),
        str(fields.get("body") or delivery.message),
        is_html=delivery.is_enabled("html"),
    )
    send_mail(server, mail, delivery.hosts)
