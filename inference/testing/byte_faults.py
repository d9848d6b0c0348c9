"""The faults of a stream's bytes: cut up, run together, or none that the protocol knows."""

from collections.abc import Callable

from inference.testing.faults import Fault, FaultKind
from inference.testing.script import Script, Step, up_to

_MIB = 1 << 20


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
    yield from up_to(script, fault.after)
    body = fault.body.encode() if fault.body else b'data: {"index":7,"token":{"id":1,"te'
    yield Step(body + b"\n\n")
    yield from script


def _rewritten_once(rewrite: Callable[[bytes, Fault], bytes]) -> Callable[[Script, Fault], Script]:
    def disturb(script: Script, fault: Fault) -> Script:
        yield from up_to(script, fault.after)
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


BYTE_FAULTS: dict[FaultKind, Callable[[Script, Fault], Script]] = {
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
