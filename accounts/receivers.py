"""Turns what Django and allauth tell into `credentials_revoked`."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.signals import password_changed, password_reset, password_set
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.credentials import announce_revocation, session_credential
from accounts.models import User


@receiver(user_logged_out, dispatch_uid="accounts.signed_out")
def _signed_out(request: HttpRequest, user: User | None, **_kwargs: Any) -> None:
    session_key = request.session.session_key
    if user is not None and session_key is not None:
        announce_revocation(user.pk, session_credential(session_key))


@receiver((password_changed, password_reset, password_set), dispatch_uid="accounts.password_replaced")
def _password_replaced(user: User, **_kwargs: Any) -> None:
    # Every session but the one that changed it has ended; whoever still holds a good one connects again.
    announce_revocation(user.pk)


@receiver(pre_save, sender=User, dispatch_uid="accounts.rights_taken")
def _rights_taken(instance: User, **_kwargs: Any) -> None:
    before = User.objects.filter(pk=instance.pk).values("is_active", "is_staff", "is_superuser").first()
    taken = before is not None and any(had and not getattr(instance, name) for name, had in before.items())
    instance.__dict__["loses_rights"] = taken


@receiver(post_save, sender=User, dispatch_uid="accounts.rights_taken_told")
def _tell_rights_taken(instance: User, **_kwargs: Any) -> None:
    # Not before it is saved: outside a transaction it would be told at once, and who looks would see nothing of it.
    if instance.__dict__.pop("loses_rights", False):
        announce_revocation(instance.pk)


@receiver(post_delete, sender=User, dispatch_uid="accounts.deleted")
def _deleted(instance: User, **_kwargs: Any) -> None:
    announce_revocation(instance.pk)


@receiver(post_delete, sender=UserSession, dispatch_uid="accounts.session_ended")
def _session_ended(instance: UserSession, **_kwargs: Any) -> None:
    announce_revocation(instance.user_id, session_credential(instance.session_key))


@receiver(post_save, sender=User, dispatch_uid="accounts.superuser_made")
def _vouch_for_superuser(instance: User, created: bool, **_kwargs: Any) -> None:
    # Whoever may make one knows the address: its owner need not confirm it before the first sign-in.
    if created and instance.is_superuser:
        EmailAddress.objects.create(user=instance, email=instance.email, primary=True, verified=True)
