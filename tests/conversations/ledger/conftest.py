"""What was reserved, remembered beyond the end."""

import pytest
from django.db import connection

_NOTE = """
CREATE TABLE noted_reservation AS SELECT generation_id, tokens, pool FROM accounts_tokenreservation WITH NO DATA;
CREATE FUNCTION note_reservation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO noted_reservation VALUES (NEW.generation_id, NEW.tokens, NEW.pool); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON accounts_tokenreservation FOR EACH ROW EXECUTE FUNCTION note_reservation();
"""
_STOP = """
DROP TRIGGER note ON accounts_tokenreservation; DROP FUNCTION note_reservation; DROP TABLE noted_reservation;
"""


@pytest.fixture
def reservations(transactional_db):
    """Return a function that gives what each generation used and what had been reserved for it, in this order."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE)
    yield _used_and_reserved
    with connection.cursor() as cursor:
        cursor.execute(_STOP)


def _used_and_reserved():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record.tokens_in + record.tokens_out, noted.tokens FROM accounts_usagerecord record"
            " JOIN noted_reservation noted USING (generation_id) ORDER BY record.generation_id"
        )
        return cursor.fetchall()
