"""How an account is kept safe: password, second factors, where it is signed in; and following an invitation."""

from allauth.account.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST, require_safe

from accounts import invitations, sign_up_rules, signing_out
from accounts.views.access import SignedInRequest, signed_in


@require_safe
@signed_in
def security(request: SignedInRequest) -> HttpResponse:
    """Show what protects the account, and lead to where it is changed."""
    kinds = list(Authenticator.objects.filter(user=request.user).values_list("type", flat=True))
    context = {
        "has_authenticator_app": Authenticator.Type.TOTP in kinds,
        "passkeys": kinds.count(Authenticator.Type.WEBAUTHN),
        "has_recovery_codes": Authenticator.Type.RECOVERY_CODES in kinds,
        "has_password": request.user.has_usable_password(),
        "sessions": UserSession.objects.purge_and_list(request.user),
    }
    return render(request, "settings/security.html", context)


@require_POST
@signed_in
def sign_out_everywhere(request: SignedInRequest) -> HttpResponse:
    """End every session and app sign-in of the account, this one too."""
    signing_out.sign_out_everywhere(request.user)
    get_adapter().logout(request)
    return redirect("account_login")


@require_GET
def follow_invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Keep the invitation for this browser's sign-up, so that its secret stays in no address."""
    if invitations.find(secret) is None:
        return render(request, "account/invitation_spent.html", status=404)
    request.session[sign_up_rules.SESSION_KEY] = secret
    return redirect("account_signup")
