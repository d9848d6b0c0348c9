"""The faults of a stream's course: it waits, it errs, it breaks off."""

from collections.abc import Callable

from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import Face, Token
from inference.testing.player import KEEP_ALIVE
from inference.testing.rejections import rejection
from inference.testing.script import Script, Step, Then, up_to


def with_error(script: Script, fault: Fault, face: Face) -> Script:
    yield from up_to(script, fault.after)
    yield Step(b"", fault.ms or 0.0)
    for frame in face.error(rejection(fault.error_type, fault.message)):
        yield Step(frame)


def with_extra_frame(script: Script, face: Face) -> Script:
    yield from script
    yield Step(face.token(Token(9_999, " extra")), 0.0, 1)


def _delay_first_token(script: Script, fault: Fault) -> Script:
    yield Step(b"", fault.ms or 1_000.0)
    yield from script


def _stall(script: Script, fault: Fault) -> Script:
    yield from up_to(script, fault.after)
    if fault.ms is None:
        yield Step(b"", then=Then.HOLD if fault.keep_alive else Then.HOLD_SILENTLY)
    else:
        yield Step(b"", fault.ms, then=Then.GO_ON if fault.keep_alive else Then.SILENCE)
    yield from script


def _keep_alives_only(script: Script, fault: Fault) -> Script:
    yield from up_to(script, fault.after)
    while True:
        yield Step(KEEP_ALIVE, fault.ms or 1_000.0)


def _cut(script: Script, fault: Fault) -> Script:
    yield from up_to(script, fault.after)
    yield Step(b"", then=_cut_by(fault))


def _cut_mid_character(script: Script, fault: Fault) -> Script:
    yield from up_to(script, fault.after)
    for step in script:
        lead = next((at for at, byte in enumerate(step.payload) if byte >= 0xC0), None)
        if lead is not None:
            yield Step(step.payload[: lead + 1], 1.0)
            yield Step(b"", then=_cut_by(fault))
        yield step


def _cut_by(fault: Fault) -> Then:
    return Then.FIN if fault.how == "fin" else Then.RESET


def _clean_end(script: Script, fault: Fault) -> Script:
    yield from up_to(script, fault.after)


def _unterminated_end(script: Script, _fault: Fault) -> Script:
    waiting = next(script, None)
    for step in script:
        if waiting is not None:
            yield waiting
        waiting = step
    if waiting is not None:
        yield waiting._replace(payload=waiting.payload.rstrip(b"\n"))


STREAM_FAULTS: dict[FaultKind, Callable[[Script, Fault], Script]] = {
    FaultKind.DELAY_FIRST_TOKEN: _delay_first_token,
    FaultKind.STALL: _stall,
    FaultKind.KEEP_ALIVES_ONLY: _keep_alives_only,
    FaultKind.CUT: _cut,
    FaultKind.CUT_MID_CHARACTER: _cut_mid_character,
    FaultKind.CLEAN_END: _clean_end,
    FaultKind.UNTERMINATED_END: _unterminated_end,
}
