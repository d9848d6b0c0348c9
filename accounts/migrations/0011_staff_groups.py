"""Give a site the groups that its staff may be put into."""

from django.db import migrations

SUPPORT = {
    "accounts": (
        "view_user",
        "add_user",
        "change_user",
        "view_sanction",
        "add_sanction",
        "view_apikey",
        "change_apikey",
        "view_usagerecord",
        "view_invitation",
        "add_invitation",
        "change_invitation",
    ),
    "account": ("view_emailaddress", "change_emailaddress"),
    "mfa": ("view_authenticator", "change_authenticator"),
    "usersessions": ("view_usersession", "change_usersession"),
}
BILLING = {
    "accounts": (
        "view_user",
        "view_tier",
        "add_tier",
        "change_tier",
        "delete_tier",
        "view_modellimit",
        "add_modellimit",
        "change_modellimit",
        "delete_modellimit",
        "view_subscription",
        "change_subscription",
        "view_planspan",
        "view_invoice",
        "change_invoice",
        "view_creditnote",
        "view_stripeevent",
        "view_usagerecord",
    ),
}
GROUPS = {"Support": SUPPORT, "Billing": BILLING}


def permission(apps, app_label, codename):
    # Django makes permissions after all migrations; these are needed before.
    action, model_name = codename.split("_")
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label=app_label, model=model_name
    )
    name = f"Can {action} {apps.get_model(app_label, model_name)._meta.verbose_name_raw}"
    found, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type_id=content_type.pk, codename=codename, defaults={"name": name}
    )
    return found.pk


def seed(apps, schema_editor):
    for name, rights in GROUPS.items():
        group, is_new = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        if is_new:
            group.permissions.add(
                *(permission(apps, label, codename) for label, names in rights.items() for codename in names)
            )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0010_stripe_customers"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("usersessions", "0001_initial"),
    ]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
