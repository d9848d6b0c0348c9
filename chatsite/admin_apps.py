"""The admin's entry in Django's registry."""

from django.contrib.admin.apps import AdminConfig


class ChatAdminConfig(AdminConfig):
    default_site = "chatsite.admin_site.ChatAdminSite"
