"""The numbers that belong to no app; `/metrics` answers them together with the apps' own."""

from prometheus_client import Gauge

COMPONENT_UP = Gauge(
    "chat_component_up",
    "Whether a component answered the last readiness probe.",
    ["component"],
    multiprocess_mode="livemostrecent",
)
