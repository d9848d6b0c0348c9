"""The admin's entrance: the site's own sign-in, and a second factor where staff need one."""

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.second_factor import lacks_second_factor


class ChatAdminSite(AdminSite):
    """Has no sign-in form of its own: Django's knows neither second factors nor limits."""

    site_header = "Chat administration"
    site_title = "Chat"
    index_title = "Administration"

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and not lacks_second_factor(request.user)

    def login(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        if lacks_second_factor(request.user):
            return redirect("mfa_index")
        if request.user.is_authenticated and not super().has_permission(request):
            return redirect("/")
        return redirect_to_login(request.GET.get("next", "/admin/"))
