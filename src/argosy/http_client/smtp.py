"""Sends one mail to one recipient by SMTP.

In: a mail and a mail server. Out: nothing, after the server accepted it. Never: sends a password unencrypted.
"""

from __future__ import annotations

import email.policy
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_host_request import DEFAULT_TIMEOUT_SECONDS, DeliveryUnknown, build_tls_context
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules

SMTPS_PORT: Final = 465
LOOPBACK_ADDRESSES: Final = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class MailServer:
    host: str
    port: int
    username: str = ""
    password: str = ""
    insecure: bool = False


@dataclass(frozen=True)
class Mail:
    sender: str
    recipient: str
    subject: str
    body: str
    is_html: bool = False


def send_mail(
    server: MailServer, mail: Mail, rules: HostRules = ALLOW_ALL_HOSTS, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
) -> None:
    message = _build_message(mail)
    address, port = rules.resolve_addresses(server.host, server.port)[0]
    context = build_tls_context(insecure=server.insecure)
    try:
        connection = (
            smtplib.SMTP_SSL(timeout=timeout_seconds, context=context)
            if port == SMTPS_PORT
            else smtplib.SMTP(timeout=timeout_seconds)
        )
        setattr(connection, "_host", server.host)  # noqa: B010 - the name that the certificate is verified for
        connection.connect(address, port)
    except (OSError, smtplib.SMTPException) as error:
        error_name = type(error).__name__
        raise TransientError(f"{server.host}: cannot be reached ({error_name}); check that it is running") from error
    is_sent = False
    try:
        _start_session(connection, server, address)
        is_sent = True
        connection.send_message(message, mail.sender, [mail.recipient])
    except smtplib.SMTPResponseException as error:
        error_class = TransientError if 400 <= error.smtp_code < 500 else UserError
        raise error_class(
            f"{server.host}: refused the mail ({error.smtp_code}); see the log of the mail server"
        ) from error
    except smtplib.SMTPRecipientsRefused as error:
        raise UserError(f"{server.host}: refused the recipient {mail.recipient}; correct it") from error
    except (OSError, smtplib.SMTPException) as error:
        error_class = DeliveryUnknown if is_sent else TransientError
        error_name = type(error).__name__
        raise error_class(
            f"{server.host}: the connection broke ({error_name}); check there if the mail arrived"
        ) from error
    finally:
        connection.close()


def _start_session(connection: smtplib.SMTP, server: MailServer, address: str) -> None:
    connection.ehlo()
    is_encrypted = isinstance(connection, smtplib.SMTP_SSL)
    if not is_encrypted and connection.has_extn("starttls"):
        connection.starttls(context=build_tls_context(insecure=server.insecure))
        connection.ehlo()
        is_encrypted = True
    if server.username:
        if not is_encrypted and address not in LOOPBACK_ADDRESSES:
            raise UserError(
                f"{server.host}: offers no TLS, so the password would be sent in clear; use port {SMTPS_PORT}"
            )
        connection.login(server.username, server.password)


def _build_message(mail: Mail) -> EmailMessage:
    message = EmailMessage(email.policy.SMTP)
    try:
        message["From"], message["To"] = mail.sender, mail.recipient
        message["Subject"] = " ".join(mail.subject.split())
    except (ValueError, IndexError) as error:
        raise UserError("the sender or recipient is not a valid mail address; correct it") from error
    message.set_content(mail.body, subtype="html" if mail.is_html else "plain")
    return message
