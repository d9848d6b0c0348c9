"""Who signs in."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.utils import timezone

from accounts.models.tier import Tier
from foundation.ids import new_id


class UserManager(BaseUserManager["User"]):
    """Makes accounts."""

    use_in_migrations = True

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Make an account, of the default tier unless `tier` is given; without a password it cannot sign in."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, **{**fields, "is_staff": True, "is_superuser": True})


def default_tier_name() -> str:
    """Return the primary key of the tier of new accounts."""
    name: str = settings.DEFAULT_TIER
    return name


class User(AbstractBaseUser, PermissionsMixin):
    """A person, or a program's account. The email address, in lower case, is the login."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=150, blank=True)
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="users", default=default_tier_name)
    time_zone = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="In which days are shown; empty: UTC."
    )
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    date_joined = models.DateTimeField(default=timezone.now)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.CheckConstraint(condition=~models.Q(email=""), name="account_has_an_email")]

    def __str__(self) -> str:
        return self.email

    def clean(self) -> None:
        super().clean()
        self.email = self.email.lower()
