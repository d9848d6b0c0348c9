"""Closing an account that is to be erased: at once, in one transaction, and before anything is erased."""

from uuid import UUID

import structlog
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.utils import timezone

from accounts.erasure import progress, receipts, sessions
from accounts.models import APIKey, Erasure, User
from accounts.signing_out import sign_out_everywhere
from foundation.background import send_after_commit
from foundation.ids import new_id

log = structlog.get_logger(__name__)

_BEGIN = "accounts.tasks.work_on_erasure"


@transaction.atomic
def request_erasure(user_id: UUID) -> Erasure:
    """Close an account for good, and have it erased. Again, it returns the same erasure. Raise `User.DoesNotExist`.

    Once it is committed no key, session or token of it is good any more, what they opened ends, and answers under way
    are stopped. Should the broker be away, the erasure is taken up within a minute of its return.
    """
    user = User.objects.select_for_update().get(pk=user_id)
    erasure = Erasure.objects.filter(user_id=user.pk).first()
    if erasure is not None:
        return erasure
    identifier = new_id()
    erasure = Erasure.objects.create(id=identifier, user_id=user.pk, digest=receipts.digest_of_secret(identifier))
    _close(user)
    if ended := sign_out_everywhere(user):
        progress.note(erasure, sessions.NAME, ended)
    send_after_commit(_BEGIN, identifier)
    log.info("account_closed", erasure_id=str(identifier))
    return erasure


def _close(user: User) -> None:
    now = timezone.now()
    APIKey.objects.filter(user=user, revoked_at=None).update(revoked_at=now)
    User.objects.filter(pk=user.pk).update(
        is_active=False, is_staff=False, is_superuser=False, password=make_password(None)
    )
    user.groups.clear()
    user.user_permissions.clear()
