"""An erasure taken step by step in the test's own process, as the tasks take it."""

from accounts.billing import mails
from accounts.erasure import progress, receipts, work
from accounts.models import Erasure


def erase_wholly(erasure_id, *, most_rounds=5):
    """Take every step until nothing remains to be done."""
    for _ in range(most_rounds):
        erase_from_every_store(erasure_id)
        receipts.mail(erasure_id)
        if work.end(erasure_id):
            return Erasure.objects.get(pk=erasure_id)
    raise AssertionError(f"not erased: {Erasure.objects.get(pk=erasure_id).stores}")


def erase_from_every_store(erasure_id, *, most_steps=None):
    """Erase from one store after the other, as they become ready; stop as if killed after so many."""
    done = 0
    while (ready := progress.ready_stores(Erasure.objects.get(pk=erasure_id))) and done != most_steps:
        mails.send_owed()  # as is done every minute
        work.erase_from(erasure_id, ready[0].name)
        done += 1
    return done
