"""Jobs as the queue knows them, each in one line, and one replica with room for all of them."""

from datetime import timedelta

from django.utils import timezone

from foundation.ids import new_id
from inference import queue
from inference.jobs import Job
from inference.permits import Offer, Permits

URL = "http://127.0.0.1:1"
PLENTY = {"small": (Offer(URL, 100_000),)}


def make_job(priority_class="free", *, user=None, model="small", tokens=100, seconds=120, generation_id=None):
    """A job of a new user's unless one is given, to be begun within so many seconds."""
    deadline = timezone.now() + timedelta(seconds=seconds)
    return Job(generation_id or new_id(), priority_class, model, user or new_id(), deadline, tokens)


async def take(client, offers=None, *, most=1, worker="worker"):
    """Return the jobs that are next."""
    return (await queue.take(client, PLENTY if offers is None else offers, worker=worker, most=most)).jobs


async def take_one(client, offers=None):
    return next(iter(await take(client, offers)), None)


async def take_all(client, offers=None, *, worker="worker"):
    taken = []
    while found := await take(client, offers, worker=worker):
        taken += found
    return taken


def open_permit(client, job=None):
    """Return a permit that holds nothing yet."""
    return Permits(client, "worker").open(job or make_job())
