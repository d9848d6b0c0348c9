"""What a long download says of itself."""

from inference.local_server.progress import Progress


def said(capsys, *steps):
    progress = Progress("small: downloading", 100_000_000, seconds_between_lines=0)
    for done_bytes in steps:
        progress.advance_to(done_bytes)
    return capsys.readouterr().out.splitlines()


def test_a_download_that_stands_still_is_told_once(capsys):
    assert said(capsys, 7_000_000, 7_000_000, 7_400_000) == ["small: downloading: 7% (7 of 100 MB)"]


def test_a_download_never_goes_backwards(capsys):
    assert len(said(capsys, 40_000_000, 30_000_000, 39_000_000)) == 1


def test_the_end_is_told_at_once_and_once(capsys):
    progress = Progress("small: joining", 100_000_000)
    for done_bytes in (50_000_000, 100_000_000, 100_000_000):
        progress.advance_to(done_bytes)
    assert capsys.readouterr().out.splitlines()[-1] == "small: joining: 100% (100 of 100 MB)"
    progress.advance_to(100_000_000)
    assert capsys.readouterr().out == ""
