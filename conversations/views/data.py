"""The page "Your data": taking along what one has, and bringing conversations in."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.time_zones import zone_of
from accounts.views.access import SignedInRequest, signed_in
from conversations.exceptions import ContentTooLong, ConversationsError, InvalidRequest, TransferInProgress
from conversations.services.exports import asking
from conversations.services.exports.download import download
from conversations.services.imports import uploads
from conversations.views.transfers_shown import came_of, shown_export, shown_import

_STATUSES = {ContentTooLong: 413, TransferInProgress: 409}


@require_safe
@signed_in
def page(request: SignedInRequest) -> HttpResponse:
    """Show what has been exported and imported, and lead to the account's deletion."""
    return _page(request)


@require_safe
@signed_in
def exports(request: SignedInRequest) -> HttpResponse:
    """Tell the page's script how far the exports are."""
    return render(request, "settings/_exports.html", _exports(request))


@require_safe
@signed_in
def imports(request: SignedInRequest) -> HttpResponse:
    """Tell the page's script how far the imports are."""
    return render(request, "settings/_imports.html", _imports(request))


@require_POST
@signed_in
def begin_export(request: SignedInRequest) -> HttpResponse:
    """Have all that the user has written into one file."""
    asking.ask_for(request.user)
    return redirect("data_page")


@require_safe
@signed_in
def export_file(request: SignedInRequest, export_id: UUID) -> StreamingHttpResponse:
    """Hand the file of an export out."""
    return download(asking.export_of(request.user.pk, export_id))


@require_POST
@signed_in
def begin_import(request: SignedInRequest) -> HttpResponse:
    """Take a file in, and have its conversations imported."""
    try:
        uploads.accept(request.user, _uploaded(request))
    except (InvalidRequest, *_STATUSES) as error:
        return _page(request, error)
    messages.success(request, "Your file has arrived.")
    return redirect("data_page")


@require_safe
@signed_in
def one_import(request: SignedInRequest, import_id: UUID) -> HttpResponse:
    """Show what came of each conversation of a file."""
    bringing = uploads.import_of(request.user.pk, import_id)
    context = {
        "zone": zone_of(request.user),
        "import": shown_import(bringing),
        "conversations": came_of(bringing),
    }
    return render(request, "settings/import.html", context)


def _page(request: SignedInRequest, refused: ConversationsError | None = None) -> HttpResponse:
    context = {
        **_exports(request),
        **_imports(request),
        "refused": refused,
        "most_import_bytes": settings.MAX_IMPORT_BYTES,
        "keep_days": settings.EXPORT_KEEP_DAYS,
    }
    status = 200 if refused is None else _STATUSES.get(type(refused), 422)
    return render(request, "settings/data.html", context, status=status)


def _exports(request: SignedInRequest) -> dict[str, object]:
    found = [shown_export(each) for each in asking.exports_of(request.user.pk).items]
    return {"exports": found, "writes": any(each.is_under_way for each in found), "zone": zone_of(request.user)}


def _imports(request: SignedInRequest) -> dict[str, object]:
    found = [shown_import(each) for each in uploads.imports_of(request.user.pk)]
    return {"imports": found, "reads": any(each.is_under_way for each in found), "zone": zone_of(request.user)}


def _uploaded(request: SignedInRequest) -> uploads.Upload:
    upload = request.FILES.get("file")
    if not isinstance(upload, UploadedFile):
        raise InvalidRequest("Choose a file first.", param="file")
    return upload
