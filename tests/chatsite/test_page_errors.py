"""What a person sees where a page cannot be had. No database is used here: it may be what is away."""

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import RequestFactory

from chatsite.page_errors import PageErrors
from conversations.exceptions import ContentTooLong, NotFound

pages = PageErrors(lambda request: HttpResponse())


def test_without_a_database_the_text_is_kept_and_the_page_says_what_to_do():
    request = RequestFactory().post("/c/new/messages", {"content": "My <long> text"})
    response = pages.process_exception(request, OperationalError("secret host"))
    page = response.content.decode()
    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert "Nothing can be stored right now" in page
    assert "My &lt;long&gt; text" in page
    assert "secret" not in page


def test_a_script_gets_a_fragment():
    request = RequestFactory().post("/c/new/messages", {"content": "x"}, headers={"X-Fragment": "1"})
    response = pages.process_exception(request, OperationalError())
    assert response.status_code == 503
    assert response.content.decode().startswith("<p")


@pytest.mark.parametrize(("error", "status"), [(NotFound("Not here."), 404), (ContentTooLong("Too long."), 413)])
def test_a_domain_error_has_the_status_of_its_code(error, status):
    assert pages.process_exception(RequestFactory().get("/c/x"), error).status_code == status


def test_a_fault_of_the_program_is_left_to_django():
    assert pages.process_exception(RequestFactory().get("/"), ZeroDivisionError()) is None
