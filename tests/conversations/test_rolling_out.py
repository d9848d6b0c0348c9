"""While a new version is rolled out, processes of the old one still write to the new tables."""

from django.db import connection


def test_the_version_before_can_store_a_generation_without_notices(db):
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, "conversations_generation")
    assert {column.name: column.default for column in columns}["notices"] == "'[]'::jsonb"
