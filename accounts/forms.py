"""The admin's forms for accounts, which have an email address where Django expects a user name."""

from typing import Any, ClassVar

from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm

from accounts.models import User


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]
    """An account to be made."""

    class Meta:
        model = User
        fields = ("email", "tier")
        field_classes: ClassVar[dict[str, Any]] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    """An account to be changed."""

    class Meta:
        model = User
        fields = "__all__"
        field_classes: ClassVar[dict[str, Any]] = {}
