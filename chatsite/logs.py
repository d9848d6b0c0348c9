"""Structured logging: ids and facts, never message text."""

import logging
import logging.config

import structlog


class _LeaveOutReadiness(logging.Filter):
    """Drops Django's error line for each 503 of `/readyz`: being asked early is not an error."""

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        return getattr(request, "path", "") != "/readyz"


def configure_logging(*, json: bool, level: str) -> None:
    """Send structlog and the standard library's loggers through one formatter to standard error."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "structured": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.format_exc_info,
                        renderer,
                    ],
                    "foreign_pre_chain": shared,
                },
            },
            "filters": {"leave-out-readiness": {"()": _LeaveOutReadiness}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "uvicorn": {"level": "ERROR"},
                "django.request": {"filters": ["leave-out-readiness"]},
                "django.channels.server": {"level": "WARNING"},
                "httpx": {"level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
