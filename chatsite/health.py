"""What monitors ask: does the process live, is the site ready, its numbers."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatsite.errors import not_found_json
from chatsite.readiness import ReadinessCache
from foundation.metrics import CONTENT_TYPE, exposition

_readiness = ReadinessCache()


@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    """Answer while the process lives, whatever else is down: restarting it would not help."""
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


@require_safe
async def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while a message can be answered, else 503; each component by name."""
    readiness = await _readiness.get()
    components = {name: {"status": "up" if is_up else "down"} for name, is_up in readiness.components().items()}
    status = "ready" if readiness.is_ready else "not_ready"
    return JsonResponse(
        {"status": status, "components": components},
        status=200 if readiness.is_ready else 503,
        headers={"Cache-Control": "no-store"},
    )


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the numbers to the allowed networks; to others there is nothing here."""
    if not _may_read_metrics(request):
        return not_found_json(request)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def _may_read_metrics(request: HttpRequest) -> bool:
    # Behind a proxy every caller has the proxy's address; what was forwarded comes from outside.
    if "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        caller = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(caller in ipaddress.ip_network(network) for network in settings.METRICS_NETWORKS)
