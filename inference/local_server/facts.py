"""The routes that say what this server is and how it does: `/info`, `/health`, `/v1/models`, `/metrics`."""

import asyncio

import aiohttp
from aiohttp import web

from inference.local_server.generate import json_response
from inference.local_server.service import SERVICE, VERSION

_HEALTH_SECONDS = 10.0


async def info(request: web.Request) -> web.Response:
    """GET /info: static facts, TGI's keys in TGI's order."""
    service = request.app[SERVICE]
    limits = service.limits
    return json_response(
        {
            "model_id": service.model.model_id,
            "model_sha": service.model.sha256,
            "model_pipeline_tag": "text-generation",
            "max_concurrent_requests": limits.max_concurrent_requests,
            "max_best_of": limits.max_best_of,
            "max_stop_sequences": limits.max_stop_sequences,
            "max_input_tokens": limits.max_input_tokens,
            "max_total_tokens": limits.max_total_tokens,
            "validation_workers": 1,
            "max_client_batch_size": limits.max_client_batch_size,
            "router": "text-generation-router",
            "version": VERSION,
            "sha": None,
            "docker_label": None,
        }
    )


async def health(request: web.Request) -> web.Response:
    """GET /health: empty 200 while the engine answers."""
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            await request.app[SERVICE].engine.require_health()
    except (TimeoutError, aiohttp.ClientError):
        response = json_response({"error": "unhealthy", "error_type": "healthcheck"})
        response.set_status(503)
        return response
    return web.Response()


async def models(request: web.Request) -> web.Response:
    """GET /v1/models: the one that is served."""
    model_id = request.app[SERVICE].model.model_id
    entry = {"id": model_id, "object": "model", "created": 0, "owned_by": model_id}
    return json_response({"object": "list", "data": [entry]})


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics: Prometheus' text."""
    service = request.app[SERVICE]
    return web.Response(text=service.metrics.render(service.load), content_type="text/plain", charset="utf-8")
