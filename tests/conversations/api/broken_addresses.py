"""The site's addresses and some whose views fail, as a fault in the program would."""

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import HttpResponseForbidden
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from chatsite.urls import urlpatterns as site_urlpatterns
from conversations.exceptions import NotFound

SECRET = "a secret of the program"
RAISED = {
    "fault": RuntimeError(SECRET),
    "suspicious": SuspiciousOperation(SECRET),
    "large": RequestDataTooBig(SECRET),
    "forbidden": PermissionDenied(SECRET),
    "database": OperationalError(SECRET),
    "domain": NotFound("There is no such thing."),
}


def raising(error):
    def view(request):
        raise error

    class RestView(APIView):
        permission_classes = ()

        def get(self, request):
            raise error

    async def asynchronous(request):
        raise error

    return view, RestView.as_view(), asynchronous


def forbidding(request):
    return HttpResponseForbidden(f"<h1>{SECRET}</h1>")


class Explaining(APIView):
    permission_classes = ()

    def get(self, request):
        return Response({"error": {"type": "t", "code": "c", "message": "m"}}, status=418)


urlpatterns = [
    path("v1/forbidding", forbidding),
    path("v1/explaining", Explaining.as_view()),
    *(
        path(f"v1/{kind}/{name}", view)
        for name, error in RAISED.items()
        for kind, view in zip(("plain", "rest", "async"), raising(error), strict=True)
    ),
    *site_urlpatterns,
]
