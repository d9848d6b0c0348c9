"""Groups of staff in the admin: what they may do is audited like everything else."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.models import Group

from foundation.audited_admin import AuditedAdmin

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(AuditedAdmin, DjangoGroupAdmin):
    """A site starts with `Support` and `Billing`."""
