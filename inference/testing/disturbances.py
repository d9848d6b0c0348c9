"""Works faults into an answer, into its tokens and into the script that sends them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from inference.testing.answers import Answer
from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import Face, Token
from inference.testing.player import KEEP_ALIVE
from inference.testing.rejections import rejection
from inference.testing.script import Script, Step, Then

_MIB = 1 << 20


def disturbed_answer(answer: Answer, faults: tuple[Fault, ...]) -> Answer:
    """The answer with the texts that a fault puts into it."""
    for fault in faults:
        alter = _TEXTS.get(fault.kind)
        if alter is not None and fault.after < len(answer.pieces):
            pieces = list(answer.pieces)
            pieces[fault.after] = alter(pieces[fault.after], fault)
            answer = replace(answer, pieces=tuple(pieces))
    return answer


def disturbed_tokens(tokens: Iterator[Token], faults: tuple[Fault, ...]) -> Iterator[Token]:
    """The tokens with the numbers and reasons that a fault gives them."""
    for fault in faults:
        if fault.kind in _TOKENS:
            tokens = _TOKENS[fault.kind](tokens, fault)
    return tokens


def disturbed_script(script: Script, faults: tuple[Fault, ...], face: Face) -> Script:
    """The script with everything that happens to its bytes and its end."""
    for fault in faults:
        if fault.kind is FaultKind.ERROR:
            script = _error(script, fault, face)
        elif fault.kind is FaultKind.EXTRA_FRAME:
            script = _extra_frame(script, face)
        elif fault.kind in _SCRIPTS:
            script = _SCRIPTS[fault.kind](script, fault)
    return script


def _up_to(script: Script, token_count: int) -> Script:
    sent = 0
    while sent < token_count:
        step = next(script, None)
        if step is None:
            return
        sent += step.token_count
        yield step


# --- the connection's fate


def _error(script: Script, fault: Fault, face: Face) -> Script:
    yield from _up_to(script, fault.after)
    yield Step(b"", fault.ms or 0.0)
    for frame in face.error(rejection(fault.error_type, fault.message)):
        yield Step(frame)


def _extra_frame(script: Script, face: Face) -> Script:
    yield from script
    yield Step(face.token(Token(9_999, " extra")), 0.0, 1)


def _delay_first_token(script: Script, fault: Fault) -> Script:
    yield Step(b"", fault.ms or 1_000.0)
    yield from script


def _stall(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)
    if fault.ms is None:
        yield Step(b"", then=Then.HOLD if fault.keep_alive else Then.HOLD_SILENTLY)
    else:
        yield Step(b"", fault.ms, then=Then.GO_ON if fault.keep_alive else Then.SILENCE)
    yield from script


def _keep_alives_only(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)
    while True:
        yield Step(KEEP_ALIVE, fault.ms or 1_000.0)


def _cut(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)
    yield Step(b"", then=_cut_by(fault))


def _cut_mid_character(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)
    for step in script:
        lead = next((at for at, byte in enumerate(step.payload) if byte >= 0xC0), None)
        if lead is not None:
            yield Step(step.payload[: lead + 1], 1.0)
            yield Step(b"", then=_cut_by(fault))
        yield step


def _cut_by(fault: Fault) -> Then:
    return Then.FIN if fault.how == "fin" else Then.RESET


def _clean_end(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)


def _unterminated_end(script: Script, _fault: Fault) -> Script:
    waiting = next(script, None)
    for step in script:
        if waiting is not None:
            yield waiting
        waiting = step
    if waiting is not None:
        yield waiting._replace(payload=waiting.payload.rstrip(b"\n"))


# --- the bytes


def _drip(script: Script, fault: Fault) -> Script:
    width, pause_ms = fault.bytes or 1, 10.0 if fault.ms is None else fault.ms
    for step in script:
        yield from _in_parts(step, list(range(0, len(step.payload), width))[1:], pause_ms)


def _split(script: Script, fault: Fault) -> Script:
    pause_ms = 1.0 if fault.ms is None else fault.ms
    for step in script:
        at = range(1, len(step.payload)) if fault.bytes is None else [min(fault.bytes, len(step.payload))]
        yield from _in_parts(step, list(at), pause_ms)


def _in_parts(step: Step, at: list[int], pause_ms: float) -> Script:
    if not step.payload:
        yield step
        return
    for start, end in zip([0, *at], at, strict=False):
        yield Step(step.payload[start:end], pause_ms)
    yield step._replace(payload=step.payload[at[-1] if at else 0 :])


def _coalesce(script: Script, fault: Fault) -> Script:
    for step in script:
        joined = step
        while joined.payload and joined.token_count < fault.count and (following := next(script, None)):
            yield Step(b"", joined.pause_ms)
            joined = following._replace(
                payload=joined.payload + following.payload, token_count=joined.token_count + following.token_count
            )
        yield joined


def _garbage(script: Script, fault: Fault) -> Script:
    yield from _up_to(script, fault.after)
    body = fault.body.encode() if fault.body else b'data: {"index":7,"token":{"id":1,"te'
    yield Step(body + b"\n\n")
    yield from script


def _rewritten_once(rewrite: Callable[[bytes, Fault], bytes]) -> Callable[[Script, Fault], Script]:
    def disturb(script: Script, fault: Fault) -> Script:
        yield from _up_to(script, fault.after)
        for step in script:
            payload = rewrite(step.payload, fault)
            yield step._replace(payload=payload)
            if payload != step.payload:
                break
        yield from script

    return disturb


def _rewritten(rewrite: Callable[[bytes, Fault], bytes]) -> Callable[[Script, Fault], Script]:
    def disturb(script: Script, fault: Fault) -> Script:
        for step in script:
            yield step._replace(payload=rewrite(step.payload, fault))

    return disturb


def _with_invalid_utf8(payload: bytes, _fault: Fault) -> bytes:
    for key in (b'"text":"', b'"content":"'):
        if key in payload:
            return payload.replace(key, key + b"\xff", 1)
    return payload


def _with_padding(payload: bytes, fault: Fault) -> bytes:
    return payload.replace(b"{", b'{"padding":"%b",' % (b"x" * (fault.bytes or _MIB)), 1)


def _with_line_ending(payload: bytes, fault: Fault) -> bytes:
    return payload.replace(b"\n", b"\r" if fault.ending == "cr" else b"\r\n")


def _without_space(payload: bytes, _fault: Fault) -> bytes:
    return b"data:" + payload.removeprefix(b"data: ") if payload.startswith(b"data: ") else payload


def _with_byte_order_mark(payload: bytes, _fault: Fault) -> bytes:
    return b"\xef\xbb\xbf" + payload if payload else payload


# --- the tokens


def _duplicate_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=number) if number == fault.after else token


def _skipped_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=number + 2) if number >= fault.after else token


def _missing_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=None) if number == fault.after else token


def _finish_reason(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for token in tokens:
        yield token if token.finish is None else token._replace(finish=fault.reason)


_TEXTS: dict[FaultKind, Callable[[str, Fault], str]] = {
    FaultKind.HUGE_TOKEN: lambda _text, fault: "x" * (fault.bytes or _MIB),
    FaultKind.LONE_SURROGATE: lambda text, _fault: text + "\ud83c",
    FaultKind.NUL: lambda text, _fault: text + "\0",
}
_TOKENS: dict[FaultKind, Callable[[Iterator[Token], Fault], Iterator[Token]]] = {
    FaultKind.DUPLICATE_INDEX: _duplicate_index,
    FaultKind.SKIPPED_INDEX: _skipped_index,
    FaultKind.MISSING_INDEX: _missing_index,
    FaultKind.FINISH_REASON: _finish_reason,
}
_SCRIPTS: dict[FaultKind, Callable[[Script, Fault], Script]] = {
    FaultKind.DELAY_FIRST_TOKEN: _delay_first_token,
    FaultKind.STALL: _stall,
    FaultKind.KEEP_ALIVES_ONLY: _keep_alives_only,
    FaultKind.CUT: _cut,
    FaultKind.CUT_MID_CHARACTER: _cut_mid_character,
    FaultKind.CLEAN_END: _clean_end,
    FaultKind.UNTERMINATED_END: _unterminated_end,
    FaultKind.DRIP: _drip,
    FaultKind.SPLIT: _split,
    FaultKind.COALESCE: _coalesce,
    FaultKind.GARBAGE: _garbage,
    FaultKind.INVALID_UTF8: _rewritten_once(_with_invalid_utf8),
    FaultKind.PADDED_FRAME: _rewritten_once(_with_padding),
    FaultKind.LINE_ENDING: _rewritten(_with_line_ending),
    FaultKind.NO_SPACE: _rewritten(_without_space),
    FaultKind.BYTE_ORDER_MARK: _rewritten_once(_with_byte_order_mark),
}
