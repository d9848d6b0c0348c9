"""The event reader: any cut, any line end, and limits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tgi.errors import Misbehaved
from inference.tgi.sse import EventReader

CORPUS = [
    (b'data: {"a":1}\n\ndata: [DONE]\n\n', [b'{"a":1}', b"[DONE]"]),
    (b'data:{"a":1}\n\ndata:[DONE]\n\n', [b'{"a":1}', b"[DONE]"]),
    (b"\xef\xbb\xbfdata: first\n\ndata: second\n\n", [b"first", b"second"]),
    (b":\n\n:keep-alive\n\ndata: x\n\n:\n\n", [b"x"]),
    (b"data: one\ndata: two\ndata:\n\n", [b"one\ntwo\n"]),
    (b"event: token\nid: 7\nretry: 10\ndata: x\n\n", [b"x"]),
    (b"data\n\n", [b""]),
    (b"data:  two spaces\n\n", [b" two spaces"]),
    (b"data: no blank line\n", [b"no blank line"]),
    (b"data: no line end", [b"no line end"]),
    (b"\n\n\ndata: x\n\n\n\n", [b"x"]),
    (b"database: x\n\n data: y\n\n", []),
    (
        'data: {"t":"é 🍸 \u2028\u2029\x85\x0b\x0c\x1c 終"}\n\n'.encode(),
        ['{"t":"é 🍸 \u2028\u2029\x85\x0b\x0c\x1c 終"}'.encode()],
    ),
    (b"", []),
]
LINE_ENDS = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}


def read(*pieces: bytes) -> list[bytes]:
    reader = EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.end()


@pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS)
@pytest.mark.parametrize(("stream", "events"), CORPUS)
def test_a_cut_at_any_byte_changes_no_event(stream, events, line_end):
    stream = stream.replace(b"\n", line_end)
    assert read(stream) == events
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == events
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == events


@pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS)
def test_an_event_is_given_as_soon_as_its_last_byte_is_there(line_end):
    reader = EventReader()
    assert reader.feed(b"data: x" + line_end + line_end) == [b"x"]


def reference(stream: bytes) -> list[bytes]:
    """The standard's algorithm over a whole stream, as plainly as it can be written."""
    events, data = [], []
    for line in [*re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf")), b""]:
        name, _, value = line.partition(b":")
        if line == b"" and data:
            events.append(b"\n".join(data))
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return events


ALPHABET = [
    b"data",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"x",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x8d\xb8",
    b"\xff",
    b"event",
    b"\n\n",
    b"data: x\n\n",
]


@given(st.lists(st.lists(st.sampled_from(ALPHABET)).map(b"".join)))
def test_any_stream_in_any_pieces_reads_as_the_standard_says(pieces):
    assert read(*pieces) == reference(b"".join(pieces))


def test_a_line_of_exactly_the_limit_is_read():
    line = b"data: " + b"x" * 94
    reader = EventReader(max_line_bytes=100)
    assert reader.feed(line[:50]) + reader.feed(line[50:] + b"\n\n") == [b"x" * 94]


@pytest.mark.parametrize("piece_bytes", [7, 1000])
def test_a_line_beyond_the_limit_is_refused_before_it_ends(piece_bytes):
    reader = EventReader(max_line_bytes=100)
    for _ in range(100 // piece_bytes):
        reader.feed(b"x" * piece_bytes)
    with pytest.raises(Misbehaved):
        reader.feed(b"x" * piece_bytes)


def test_a_whole_line_beyond_the_limit_is_refused():
    with pytest.raises(Misbehaved):
        EventReader(max_line_bytes=100).feed(b"data: " + b"x" * 101 + b"\n\n")


def test_an_event_of_too_many_lines_is_refused():
    reader = EventReader(max_event_bytes=100)
    with pytest.raises(Misbehaved):
        reader.feed(b"data: 0123456789\n" * 11)


def test_the_limit_counts_each_event_for_itself():
    reader = EventReader(max_event_bytes=100)
    assert len(reader.feed(b"data: 0123456789\n\n" * 100)) == 100
