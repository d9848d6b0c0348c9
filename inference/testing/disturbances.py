"""Works faults into an answer, into its tokens and into the script that sends them."""

from collections.abc import Iterator
from dataclasses import replace

from inference.testing.answers import Answer
from inference.testing.byte_faults import BYTE_FAULTS
from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import Face, Token
from inference.testing.script import Script
from inference.testing.stream_faults import STREAM_FAULTS, with_error, with_extra_frame
from inference.testing.token_faults import TEXT_FAULTS, TOKEN_FAULTS

_SCRIPT_FAULTS = STREAM_FAULTS | BYTE_FAULTS


def disturbed_answer(answer: Answer, faults: tuple[Fault, ...]) -> Answer:
    """The answer with the texts that a fault puts into it."""
    for fault in faults:
        alter = TEXT_FAULTS.get(fault.kind)
        if alter is not None and fault.after < len(answer.pieces):
            pieces = list(answer.pieces)
            pieces[fault.after] = alter(pieces[fault.after], fault)
            answer = replace(answer, pieces=tuple(pieces))
    return answer


def disturbed_tokens(tokens: Iterator[Token], faults: tuple[Fault, ...]) -> Iterator[Token]:
    """The tokens with the numbers and reasons that a fault gives them."""
    for fault in faults:
        if fault.kind in TOKEN_FAULTS:
            tokens = TOKEN_FAULTS[fault.kind](tokens, fault)
    return tokens


def disturbed_script(script: Script, faults: tuple[Fault, ...], face: Face) -> Script:
    """The script with everything that happens to its bytes and its end."""
    for fault in faults:
        if fault.kind is FaultKind.ERROR:
            script = with_error(script, fault, face)
        elif fault.kind is FaultKind.EXTRA_FRAME:
            script = with_extra_frame(script, face)
        elif fault.kind in _SCRIPT_FAULTS:
            script = _SCRIPT_FAULTS[fault.kind](script, fault)
    return script
