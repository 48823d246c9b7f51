"""Request schemas. Unknown and unsupported fields are refused, and the error names them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from listenwell.data.dialogue import Turn, readable
from listenwell.labels.taxonomy import unknown_name
from listenwell.serving.errors import bad_request
from listenwell.serving.settings import Limits

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "metadata": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "presence_penalty": (0,),
    "prompt_cache_key": (),
    "prompt_cache_retention": (),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "safety_identifier": (),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "user": (),
    "verbosity": ("medium",),
    "web_search_options": (),
}
"""Unsupported fields of the OpenAI protocol, and the values that, like None, ask for nothing and are accepted."""

IGNORED = ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")
"""Fields that never change a reply, whatever their value. They are dropped."""

OF_MESSAGES: dict[str, tuple[Any, ...]] = {
    "annotations": ([],),
    "audio": (),
    "function_call": (),
    "name": (),
    "refusal": (),
    "tool_call_id": (),
    "tool_calls": ([],),
}
"""The same for the fields of a message: clients send back the messages they received."""

NO_SYSTEM = (
    "system messages are not supported: what happened before goes in listenwell.situation, what a reply should do in "
    "listenwell.intent"
)


class Strict(BaseModel):
    """A model that accepts no unknown fields and does not coerce types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


class TextPart(Strict):
    type: Literal["text"]
    text: str


class Message(Strict):
    role: Literal["user", "assistant"]
    content: str | list[TextPart]

    @model_validator(mode="before")
    @classmethod
    def _without_neutral(cls, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        if record.get("role") in ("system", "developer"):
            raise bad_request(f"messages: {NO_SYSTEM}", "messages", "unsupported_role")
        return _without_neutral(record, OF_MESSAGES, "messages")

    @property
    def text(self) -> str:
        said = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return readable(said)


class StreamOptions(Strict):
    include_usage: bool = False
    include_obfuscation: bool = False


class Wishes(Strict):
    """Options for a reply beyond the OpenAI protocol."""

    intent: Annotated[str | None, Field(max_length=100)] = None
    """What the reply should do or express, as a label."""
    positivity: Annotated[float, Field(ge=0, le=1)] | None = None
    """How strongly the reply should lift the mood."""
    situation: str | None = None
    """Background: what happened before the conversation."""
    explain: bool = False
    """Whether to include the recognized emotion and the reasons for the reply."""
    mode: Literal["rerank", "stream"] | None = None
    """rerank: the best of several candidates; stream: a single one, as it is decoded. The default follows `stream`."""


class ChatRequest(Strict):
    """POST /v1/chat/completions."""

    model: Annotated[str | None, Field(max_length=200)] = None
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    stop: str | list[str] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    listenwell: Wishes | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_unsupported(cls, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        given = {name: value for name, value in record.items() if name not in IGNORED}
        return _without_neutral(given, NEUTRAL, "")

    @property
    def wishes(self) -> Wishes:
        return self.listenwell or Wishes()

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class UnderstandRequest(Strict):
    """POST /v1/understand."""

    model: Annotated[str | None, Field(max_length=200)] = None
    messages: list[Message] = Field(min_length=1)


def _without_neutral(record: dict[str, Any], known: dict[str, tuple[Any, ...]], place: str) -> dict[str, Any]:
    """Drop fields whose value asks for nothing; refuse any that ask for something unsupported."""
    kept = {}
    for name, value in record.items():
        if name not in known:
            kept[name] = value
        elif value is not None and not any(type(value) is type(one) and value == one for one in known[name]):
            if known[name] and isinstance(value, float) and value == 0 and 0 in known[name]:
                continue  # 0.0 means the same as 0
            field = f"{place}: {name}" if place else name
            raise bad_request(f"{field} is not supported here", name, "unsupported_field")
    return kept


def turns_of(messages: list[Message], limits: Limits) -> tuple[Turn, ...]:
    """Convert messages to turns and check the limits. The last message must be a nonempty one from the user."""
    if len(messages) > limits.turns:
        problem = f"messages: {len(messages)} of them, at most {limits.turns} are read"
        raise bad_request(problem, "messages", "too_many_messages")
    total = 0
    for place, message in enumerate(messages):
        length = len(message.text)
        total += length
        if length > limits.message_characters:
            raise too_long(f"messages[{place}].content", length, limits.message_characters)
    if total > limits.total_characters:
        raise too_long("messages", total, limits.total_characters)
    last = len(messages) - 1
    if messages[last].role != "user":
        problem = f"messages[{last}].role: the last message is the assistant's own; a reply answers one of the user"
        raise bad_request(problem, f"messages[{last}].role", "nothing_to_answer")
    if not messages[last].text.strip():
        problem = f"messages[{last}].content: the last message is empty; there is nothing to reply to"
        raise bad_request(problem, f"messages[{last}].content", "empty_message")
    return tuple(Turn("speaker" if one.role == "user" else "listener", one.text) for one in messages)


def check_limits(request: ChatRequest, limits: Limits) -> None:
    """Check the limits on everything but the conversation itself."""
    if (request.n or 1) > limits.n:
        raise bad_request(f"n: {request.n} replies, at most {limits.n} are written", "n", "too_many_replies")
    if len(request.stops) > limits.stops:
        message = f"stop: {len(request.stops)} sequences, at most {limits.stops} are looked for"
        raise bad_request(message, "stop", "too_many_stops")
    for stop in request.stops:
        if not stop:
            raise bad_request("stop: a sequence is empty", "stop", "empty_stop")
        if len(stop) > limits.stop_characters:
            raise too_long("stop", len(stop), limits.stop_characters)
    situation = request.wishes.situation
    if situation is not None and len(situation) > limits.message_characters:
        raise too_long("listenwell.situation", len(situation), limits.message_characters)


def too_long(param: str, length: int, most: int) -> Exception:
    return bad_request(f"{param}: {length:,} characters, at most {most:,} are read", param, "too_long")


def model_name(asked: str | None, served: list[str]) -> str:
    """The name of the requested model; the first served model if none is given."""
    from listenwell.serving.errors import ApiError
    from listenwell.web.refusals import Refusal

    if asked is None:
        return served[0]
    if asked not in served:
        raise ApiError(Refusal(404, unknown_name("model", readable(asked), served), "model_not_found", "model"))
    return asked
