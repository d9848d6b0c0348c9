"""Has the database itself refuse to change what an invoice or a credit note said when it was issued."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION accounts_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'What was issued is not changed: an invoice is paid, or credited.' USING ERRCODE = 'restrict_violation';
END
$$
"""
KEPT = {
    "invoice": "number subscription_id issuer period_start period_end currency total issued_at due_at",
    "invoiceline": "invoice_id position description amount",
    "creditnote": "number invoice_id amount created_at",
}
"""Names and reasons are not among them: they are taken out when an account is erased."""


def _guard(table, columns):
    before, after = (", ".join(f"{row}.{column}" for column in columns.split()) for row in ("OLD", "NEW"))
    return [
        f"CREATE TRIGGER stays_as_issued BEFORE UPDATE ON accounts_{table} FOR EACH ROW"
        f" WHEN (({before}) IS DISTINCT FROM ({after})) EXECUTE FUNCTION accounts_refuse_change()",
        f"CREATE TRIGGER stays BEFORE DELETE ON accounts_{table} FOR EACH ROW EXECUTE FUNCTION accounts_refuse_change()",
    ]


def _unguard(table):
    return [f"DROP TRIGGER {name} ON accounts_{table}" for name in ("stays_as_issued", "stays")]


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_invitations_by_mail")]

    operations = [
        migrations.RunSQL(
            [REFUSE, *(statement for table in KEPT for statement in _guard(table, KEPT[table]))],
            [*(statement for table in KEPT for statement in _unguard(table)), "DROP FUNCTION accounts_refuse_change"],
        )
    ]
