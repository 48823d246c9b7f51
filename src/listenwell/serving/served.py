"""A system as the server uses it: its capabilities, care in front of it, an engine behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from listenwell.contract import Controls
from listenwell.data.dialogue import Turn
from listenwell.decoding import Decoding
from listenwell.layers.cpu import computing_threads
from listenwell.serving.engine import Engine
from listenwell.serving.errors import bad_request
from listenwell.serving.metrics import Metrics
from listenwell.serving.schema import ChatRequest, Wishes
from listenwell.serving.settings import Limits, Settings
from listenwell.systems.base import as_context, draw_number
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.controls import controls_from_request
from listenwell.systems.reply import Reply
from listenwell.systems.safety import SafetyWrapper
from listenwell.systems.together import ANOTHER, Job
from listenwell.text import words
from listenwell.weights import is_remote

REMOTE_THREADS = 16
"""Concurrent requests to a remote endpoint; the work is done elsewhere."""

HEARD = 5
"""The number of emotions in an explanation."""


@dataclass(slots=True)
class Served:
    """One model of a server."""

    name: str
    wrapper: SafetyWrapper
    engine: Engine
    about: str = ""

    @property
    def system(self) -> Any:
        """The system without care; callers must have run care first."""
        return self.wrapper.system

    def start(self) -> None:
        self.engine.start(REMOTE_THREADS if is_remote(self.name) else 1)

    def describe(self) -> dict[str, Any]:
        """The fields of /v1/models that go beyond the OpenAI protocol."""
        can = Capabilities.of(self.system)
        return {
            "languages": list(self.wrapper.languages),
            "takes_intent": can.takes_label,
            "intents": list(can.label_set) if can.takes_label else [],
            "takes_positivity": can.takes_positivity,
            "about": self.about,
        }

    def controls(self, wishes: Wishes) -> Controls | None:
        """The controls for a reply. Raises an error that names the field if the system does not support it."""
        for name in ("intent", "positivity"):
            try:
                controls_from_request(self.system, **{name: getattr(wishes, name)})
            except (ValueError, TypeError) as problem:
                raise bad_request(f"listenwell.{name}: {problem}", f"listenwell.{name}") from problem
        return controls_from_request(self.system, wishes.intent, wishes.positivity, wishes.situation)

    def jobs(self, request: ChatRequest, turns: Sequence[Turn], limits: Limits) -> list[Job]:
        """One job per requested reply. They differ in their random numbers."""
        controls = self.controls(request.wishes)
        context = as_context(list(turns), controls)
        decoding = self._decoding(request, limits)
        number = draw_number(context)
        options = {"grows": bool(request.stream), "stops": tuple(request.stops)}
        return [
            Job(context, controls, _another(decoding, index), number + index * ANOTHER, **options)  # type: ignore[arg-type]
            for index in range(request.n or 1)
        ]

    def _decoding(self, request: ChatRequest, limits: Limits) -> Decoding:
        own: Decoding = getattr(self.system, "decoding", None) or Decoding()
        mode = request.wishes.mode or ("stream" if request.stream else "rerank")
        options = own.streamed() if mode == "stream" else own
        changes: dict[str, Any] = {}
        if request.temperature == 0:
            options = replace(own.streamed(), method="greedy")
        elif request.temperature is not None or request.top_p is not None:
            options = options if options.method == "sample" else replace(own.streamed(), method="sample")
            changes |= {} if request.temperature is None else {"temperature": float(request.temperature)}
            changes |= {} if request.top_p is None else {"top_p": float(request.top_p)}
        if request.seed is not None:
            changes["seed"] = request.seed
        if request.most_tokens is not None:
            most = min(request.most_tokens, limits.reply_tokens)
            changes |= {"max_length": most, "min_length": min(options.min_length, most)}
        return replace(options, **changes)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Count tokens with the system's own tokenizer, or words if it has none."""
        tokenizer = getattr(self.system, "tokenizer", None)
        if tokenizer is None:
            tokenizer = getattr(getattr(self.system, "writer", None), "tokenizer", None)
        if tokenizer is None:
            return sum(len(words(text)) for text in texts)
        return sum(map(len, tokenizer.encode_many(list(texts))))

    def understand(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """Analyze a conversation without replying. What the system cannot predict is None."""
        context = as_context(list(turns))
        heard, plan = self._hear(context)
        labels = self._label([turn.text for turn in context])
        return {
            **heard_record(heard),
            "turns": [
                {"text": turn.text, "label": label and label.name, "confidence": label and rounded(label.confidence)}
                for turn, label in zip(context, labels, strict=True)
            ],
            "plan": plan,
        }

    def _hear(self, context: tuple[Turn, ...]) -> tuple[Reply, dict[str, Any] | None]:
        can = Capabilities.of(self.system)
        if can.can_plan:
            (one,) = self.system.plan([context])
            plan = one.plan
            record = {
                "label": plan.label,
                "probability": plan.chances[plan.label],
                "reason": plan.reason,
                "likeliest": dict(list(plan.expected.items())[:HEARD]),
                "positivity": plan.positivity,
                "now": str(one.now),
            }
            return Reply("", one.prediction.emotion, one.prediction.emotions), jsonable(record)
        if can.can_recognise:
            heard = self.system.recognise(context)
            return heard, None if heard.label is None else {"label": heard.label}
        return Reply(""), None

    def _label(self, texts: list[str]) -> list[Any]:
        from listenwell.systems.conversation import default_labeller

        labeller = getattr(self.system, "labeller", None) or default_labeller()
        return [None] * len(texts) if labeller is None else labeller.label(texts)


def _another(decoding: Decoding, index: int) -> Decoding:
    """Decoding options for an additional reply, which is sampled: greedy and beam search would repeat the first."""
    if not index or decoding.method == "sample":
        return decoding
    return replace(decoding.streamed(), method="sample", temperature=0.7, top_p=0.9)


def heard_record(reply: Reply) -> dict[str, Any]:
    """The recognized emotion, and the most likely emotions."""
    likeliest = {name: rounded(chance) for name, chance in list(reply.emotions.items())[:HEARD]}
    emotion = None
    if reply.emotion is not None:
        emotion = {"name": reply.emotion, "probability": rounded(reply.emotions.get(reply.emotion))}
    return {"emotion": emotion, "emotions": likeliest}


def explanation(reply: Reply) -> dict[str, Any]:
    """The explanation of a reply as the API returns it."""
    label = None
    if reply.label is not None:
        label = {"name": reply.label, "probability": rounded(reply.reasons.get("probability"))}
    return {
        **heard_record(reply),
        "label": label,
        "candidates": [candidate.text for candidate in reply.candidates],
        "reasons": jsonable(dict(reply.reasons)),
    }


def rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 4)


def jsonable(value: Any) -> Any:
    """Convert to plain JSON values, with numbers rounded."""
    if isinstance(value, dict):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    try:
        return round(float(value), 4)
    except (TypeError, ValueError):
        return str(value)


def load_served(settings: Settings, metrics: Metrics) -> dict[str, Served]:
    """Load all systems and have each reply once, so that lazy initialization is done before the first request."""
    from listenwell.loading import load, talking

    abouts = talking()
    served = {}
    for name in settings.models:
        wrapper = load(name, base_url=settings.base_url if is_remote(name) else None)
        served[name] = serve_system(name, wrapper, settings, metrics, abouts.get(name, ""))
        wrapper.care("I am here.")
        if not is_remote(name):
            wrapper.system.reply("I am here.")
    return served


def serve_system(name: str, wrapper: SafetyWrapper, settings: Settings, metrics: Metrics, about: str = "") -> Served:
    threads = settings.threads or computing_threads()
    engine = Engine(name, wrapper.system, metrics, settings.room, compute_threads=threads)
    return Served(name, wrapper, engine, about)
