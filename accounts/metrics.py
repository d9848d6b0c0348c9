"""The numbers of accounts; `/metrics` answers them together with the others'."""

from prometheus_client import Gauge

OVERDUE_ERASURES = Gauge(
    "chat_erasures_overdue",
    "Erasures of accounts that were asked for more than an hour ago and are not done.",
    multiprocess_mode="livemostrecent",
)
