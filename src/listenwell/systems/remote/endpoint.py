"""Endpoint: a model behind any server that speaks the OpenAI protocol, as a System."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, dropwhile, groupby
from typing import Any, TypeVar, Unpack

from listenwell.contract import Controls
from listenwell.data.dialogue import Example, Turn
from listenwell.decoding import Decoding, changed
from listenwell.labels.taxonomy import label_id
from listenwell.systems.base import Likelihoods, Talk, as_context, as_contexts
from listenwell.systems.controls import ReplyOptions, for_this_call
from listenwell.systems.remote.http import KEYS, Clock, Patience, RemoteError, Server, clean
from listenwell.systems.reply import Candidate, Reply
from listenwell.weights import REMOTE

__all__ = ["Clock", "Endpoint", "Patience", "RemoteError", "Server", "endpoint"]

URLS = ("LISTENWELL_BASE_URL", "OPENAI_BASE_URL")

PROMPT = (
    "You are a warm, attentive listener. Somebody tells you what happened to them and how they feel. Answer in one or "
    "two short sentences of everyday words. Acknowledge the feeling first; then show that you followed what was said, "
    "or ask one gentle question about it. Do not lecture, do not list advice, and never claim to be a person."
)
"""The default system prompt; LISTENWELL_PROMPT replaces it."""

SPOKEN = Decoding(method="sample", temperature=0.7, top_p=0.95, max_length=120)

HISTORY = 8_000
"""Characters of a conversation to send, about 2,000 tokens: input costs money, and its length is limited."""

Result = TypeVar("Result")


@dataclass
class Habits:
    """What requests have shown about a server; copies of an endpoint with other decoding options share it."""

    limit: str = "max_tokens"
    """Its name for the length limit of a reply."""
    gives_several: bool = True
    """Whether one request can return several candidates."""


class Endpoint:
    """A model behind a server, as a System. It gives no likelihoods, and its candidates have no scores.

    >>> Endpoint("some-model", Server("http://localhost:8000/v1")).reply("I lost my job today").text
    """

    takes_label = True
    """`Controls.label` becomes part of the prompt."""
    labeller = None
    """It does not say which emotion it recognises."""
    languages = ("en", "zh")
    """The languages passed on to it: those that Care reads, whatever else the model behind the server speaks."""

    def __init__(
        self, model: str, server: Server, prompt: str = PROMPT, decoding: Decoding = SPOKEN, history: int = HISTORY
    ) -> None:
        if not model.strip():
            raise ValueError(f"{REMOTE} needs the name of a model after it, such as {REMOTE}NAME")
        self.name = REMOTE + model
        self.model_name = model
        self.server = server
        self.prompt = prompt
        self.decoding = decoding
        self.history = history
        self._habits = Habits()

    def __repr__(self) -> str:
        return f"Endpoint({self.model_name!r}, {self.server!r})"

    @property
    def about(self) -> dict[str, str]:
        """What its measured results depend on, besides its name and decoding."""
        return {"server": self.server.place, "prompt": self.prompt}

    @property
    def decoding(self) -> Decoding:
        return self._decoding

    @decoding.setter
    def decoding(self, decoding: Decoding) -> None:
        """Accepts only what the protocol can express: ignoring other options would mislabel measured results."""
        if decoding.method == "beam":
            raise ValueError(f"{self.name} writes greedily or by sampling, it has no beams (--decoding.method sample)")
        unsupported = {name: getattr(decoding, name) for name in ("top_k", "block_ngrams", "guidance")}
        unsupported["min_length"] = decoding.min_length > 1
        for option in (name for name, given in unsupported.items() if given):
            raise ValueError(f"{self.name} does not support Decoding.{option}: the protocol has no such option")
        self._decoding = decoding

    def with_decoding(self, **changes: Any) -> Endpoint:
        """Returns a copy with other decoding options."""
        other = copy(self)
        other.decoding = changed(self.decoding, changes)
        return other

    def reply(self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]) -> Reply:
        bot, controls = for_this_call(self, controls, named)
        return bot._reply(as_context(talk, controls), controls)

    def replies(
        self,
        talks: Sequence[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
        **named: Unpack[ReplyOptions],
    ) -> list[Reply]:
        bot, controls = for_this_call(self, controls, named)
        contexts = as_contexts(talks, controls)
        return bot.server.together([partial(bot._reply, context, controls) for context in contexts], done)

    def stream(
        self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]
    ) -> Generator[str, None, Reply]:
        """Streams the reply: each item is the whole text so far. The generator's return value is the complete Reply."""
        bot, controls = for_this_call(self, controls, named)
        return bot._stream(as_context(talk, controls), controls)

    def _stream(self, context: Sequence[Turn], controls: Controls | None) -> Generator[str, None, Reply]:
        messages = self._messages(context, _plan(controls))
        ends = self.server.deadline()

        def begin() -> Iterator[str]:
            pieces = self._said(self.server.listen(self._body(messages, stream=True), ends))
            return chain([next(pieces, "")], pieces)

        said = shown = ""
        for piece in self._adapted(begin, ends):
            said += piece
            text = self.server.hide(clean(said), growing=True).strip()
            if text and text != shown:
                shown = text
                yield text
        text = self.server.hide(clean(said)).strip()
        if not text:
            raise self._nothing()
        if text != shown:
            yield text
        return self._as_reply([Candidate(text, 0.0)], controls)

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        return None

    def candidates(self, context: Sequence[Turn], count: int, plan: str | None = None) -> list[Candidate]:
        """Returns up to `count` replies, in the order received. `plan`, in words, is added to the prompt.

        Empty replies are left out. All scores are 0, because an endpoint does not score its replies.
        """
        if count > 1 and self.decoding.method == "greedy":
            raise ValueError(f"{self.name}: several candidates are drawn by sampling (--decoding.method sample)")
        messages, ends = self._messages(context, plan), self.server.deadline()
        texts: list[str] = []
        problem: RemoteError | None = None
        if count > 1 and self._habits.gives_several:
            try:
                texts = self._texts(messages, ends, count)
            except RemoteError as error:
                if error.status not in (400, 422):
                    raise
                problem = error  # perhaps because of n > 1: the next request tells
        one_each = [partial(self._texts, messages, ends, number=number) for number in range(len(texts), count)]
        texts += chain.from_iterable(self.server.together(one_each))
        if count > 1 and (problem is not None or len(one_each) >= count - 1):
            self._habits.gives_several = False
        candidates = [Candidate(text, 0.0) for text in texts[:count] if text]
        if not candidates:
            raise self._nothing()
        return candidates

    def many_candidates(
        self,
        requests: Sequence[tuple[Sequence[Turn], Controls | None]],
        done: Callable[[int], None] | None = None,
    ) -> list[list[Candidate]]:
        """Returns the candidates for each context and its controls, as many as the decoding says; a few run at once."""
        count = self.decoding.candidates
        return self.server.together(
            [partial(self.candidates, context, count, _plan(controls)) for context, controls in requests], done
        )

    def _reply(self, context: Sequence[Turn], controls: Controls | None) -> Reply:
        return self._as_reply(self.candidates(context, self.decoding.candidates, _plan(controls)), controls)

    def _as_reply(self, candidates: Sequence[Candidate], controls: Controls | None) -> Reply:
        label = None if controls is None else controls.label
        return Reply(candidates[0].text, label=label, candidates=tuple(candidates), system=self.name)

    def _messages(self, context: Sequence[Turn], plan: str | None) -> list[dict[str, str]]:
        prompt = self.prompt if plan is None else f"{self.prompt}\n\nFor this reply: {plan}"
        roles = {"speaker": "user", "listener": "assistant"}
        spoken = latest([turn for turn in context if turn.text.strip()], self.history)
        # Consecutive turns of one person are merged: many servers require the roles to alternate.
        said = [(who, "\n".join(turn.text for turn in turns)) for who, turns in groupby(spoken, lambda t: t.speaker)]
        return [{"role": "system", "content": prompt}, *({"role": roles[who], "content": text} for who, text in said)]

    def _body(self, messages: list[dict[str, str]], number: int = 0, **more: Any) -> dict[str, Any]:
        """Builds a request. `number` separates the requests for one reply's candidates, lest a seed make them equal.

        A seed of 0 is not sent, because some servers refuse any seed.
        """
        options = self.decoding
        body: dict[str, Any] = {"model": self.model_name, "messages": messages, self._habits.limit: options.max_length}
        body["temperature"] = options.temperature if options.method == "sample" else 0
        if options.method == "sample" and options.top_p < 1:
            body["top_p"] = options.top_p
        if options.seed:
            body["seed"] = options.seed + number
        return {**body, **more}

    def _texts(self, messages: list[dict[str, str]], ends: float, n: int = 1, number: int = 0) -> list[str]:
        more = {"n": n} if n > 1 else {}
        record = self._adapted(lambda: self.server.ask(self._body(messages, number, **more), ends), ends)
        choices = record.get("choices")
        if not isinstance(choices, list) or not choices:
            raise RemoteError(f"{self.server.place}: answered without choices; does it speak /chat/completions?")
        return [self.server.hide(clean(_content(choice, "message"))).strip() for choice in choices]

    def _said(self, records: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Yields the pieces of text in a stream's records; a server that does not stream gives a single piece."""
        for record in records:
            choices = record.get("choices")
            for choice in choices[:1] if isinstance(choices, list) else ():  # a usage record has none
                if piece := _content(choice, "delta") or _content(choice, "message"):
                    yield piece

    def _adapted(self, attempt: Callable[[], Result], ends: float) -> Result:
        """Runs the attempt; repeats it with the newer name of the length limit if the server requires that."""
        try:
            return self.server.persist(attempt, ends)
        except RemoteError as problem:
            if problem.status != 400 or "max_completion_tokens" not in str(problem):
                raise
        self._habits.limit = "max_completion_tokens"
        return self.server.persist(attempt, ends)

    def _nothing(self) -> RemoteError:
        return RemoteError(
            f"{self.name} wrote an empty reply; {self.decoding.max_length} tokens may be too few for it "
            "(--decoding.max_length)"
        )


def endpoint(name: str, base_url: str | None = None) -> Endpoint:
    """Returns the endpoint for `openai:NAME`, with key, prompt and (unless given) URL from the environment."""
    url = base_url or _first(URLS)
    if not url:
        raise ValueError(f"{name} needs the URL of a server: --base-url http://HOST:PORT/v1, or {URLS[0]}")
    prompt = os.environ.get("LISTENWELL_PROMPT", "").strip() or PROMPT
    return Endpoint(name.removeprefix(REMOTE), Server(url, _first(KEYS)), prompt)


def latest(turns: Sequence[Turn], most: int) -> list[Turn]:
    """Returns the newest turns that fit into `most` characters, uncut; if the last one alone is too long, its end.

    The result begins with a speaker turn, as many servers require.
    """
    newest: list[Turn] = []
    for turn in reversed(turns):
        if len(turn.text) > most:
            if not newest:
                newest = [replace(turn, text=turn.text[-most:])]
            break
        most -= len(turn.text)
        newest.insert(0, turn)
    if len(newest) < len(turns):
        newest = [*dropwhile(lambda turn: turn.speaker == "listener", newest[:-1]), newest[-1]]
    return newest


def _plan(controls: Controls | None) -> str | None:
    if controls is None or controls.label is None:
        return None
    label_id(controls.label)
    return f"what it does or expresses is {controls.label}."


def _content(choice: Any, part: str) -> str:
    """The text of a choice's message or delta: a string, a list of parts, or nothing."""
    said = choice.get(part) if isinstance(choice, dict) else None
    content = said.get("content") if isinstance(said, dict) else None
    if isinstance(content, list):
        content = "".join(str(item.get("text") or "") for item in content if isinstance(item, dict))
    return content if isinstance(content, str) else ""


def _first(names: Iterable[str]) -> str | None:
    """Returns the first of these environment variables that is not empty."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)
