"""The generation parameters of a request, as the client sent them."""

from dataclasses import dataclass

from inference.local_server.bodies import MAX_UINT32, MAX_UINT64, Fields
from inference.local_server.grammar import Grammar, read_grammar


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """TGI's generation parameters; `None` is "not sent"."""

    best_of: int | None = None
    temperature: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    typical_p: float | None = None
    do_sample: bool = False
    max_new_tokens: int | None = None
    return_full_text: bool | None = None
    stop: tuple[str, ...] = ()
    truncate: int | None = None
    details: bool = False
    decoder_input_details: bool = False
    seed: int | None = None
    top_n_tokens: int | None = None
    grammar: Grammar | None = None

    @property
    def is_sampling(self) -> bool:
        """Whether a token is drawn rather than the likeliest one taken."""
        return (
            self.do_sample
            or self.temperature not in (None, 1.0)
            or any(value is not None for value in (self.top_k, self.top_p, self.typical_p))
        )


@dataclass(frozen=True, slots=True)
class GenerateBody:
    """The body of `/generate`, `/generate_stream`, `/tokenize` and, with `stream`, of `/`."""

    inputs: str
    parameters: Parameters
    stream: bool


def read_generate_body(fields: Fields) -> GenerateBody:
    """Raises `RejectedBodyError` for a wrong shape; the values are judged later."""
    inputs = fields.required_text("inputs")
    fields.not_null("parameters")
    given = fields.object("parameters")
    # Without `parameters` TGI samples; with an empty object it does not.
    parameters = Parameters(do_sample=True) if given is None else _read_parameters(given)
    return GenerateBody(inputs, parameters, fields.flag("stream", default=False))


def _read_parameters(given: Fields) -> Parameters:
    given.not_null("stop")
    given.flag("watermark", default=False)
    given.text("adapter_id")
    return Parameters(
        best_of=given.unsigned("best_of", MAX_UINT64),
        temperature=given.number("temperature"),
        repetition_penalty=given.number("repetition_penalty"),
        frequency_penalty=given.number("frequency_penalty"),
        top_k=given.integer("top_k", -(2**31), 2**31 - 1),
        top_p=given.number("top_p"),
        typical_p=given.number("typical_p"),
        do_sample=given.flag("do_sample", default=False),
        max_new_tokens=given.unsigned("max_new_tokens"),
        return_full_text=given.optional_flag("return_full_text"),
        stop=given.texts("stop") or (),
        truncate=given.unsigned("truncate", MAX_UINT64),
        details=given.flag("details", default=False),
        decoder_input_details=given.flag("decoder_input_details", default=False),
        seed=given.unsigned("seed", MAX_UINT64),
        top_n_tokens=given.unsigned("top_n_tokens", MAX_UINT32),
        grammar=read_grammar(given, "grammar"),
    )
