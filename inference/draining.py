"""Taking a server out of use, and putting it back."""

from inference.models import Replica


def set_draining(url: str, *, is_draining: bool) -> list[Replica]:
    """Drain the server at an address, or end that; return its rows, one for each version that it serves.

    It gets no new request as soon as the workers have read it, which takes them seconds; none is taken from it.
    """
    rows = list(Replica.objects.filter(url=url.rstrip("/")).select_related("version"))
    Replica.objects.filter(pk__in=[row.pk for row in rows]).update(is_draining=is_draining)
    for row in rows:
        row.is_draining = is_draining
    return rows
