"""SafetyWrapper: any system behind Care. A message with a sign of danger never reaches the system."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Unpack

from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Talk, Turn
from listenwell.systems.base import Likelihoods, System, as_answer, as_context, as_dialogues
from listenwell.systems.controls import ReplyOptions, for_this_call
from listenwell.systems.reply import Reply
from listenwell.systems.safety.conversation import sign_in
from listenwell.systems.safety.once import remembering
from listenwell.systems.safety.other_languages import FixedReply, foreign_care, language_notice, languages_of, trusted
from listenwell.systems.safety.replies import care_reply
from listenwell.systems.safety.resources import Resources, load_resources
from listenwell.systems.safety.status import warn_of_languages, warn_where_rules_serve_alone


def spoken_by(system: Any) -> tuple[str, ...]:
    """The languages that a system speaks; English if it does not declare any."""
    return tuple(getattr(system, "languages", ("en",)))


def _heard(talk: Talk, named: Mapping[str, Any]) -> Dialogue:
    """Returns the conversation. The input of a backward model counts as the user's own words: they may mean it."""
    return Dialogue.from_texts([as_answer(talk).text]) if _direction(named) else Dialogue.from_talk(talk)


def _direction(named: Mapping[str, Any]) -> dict[str, Any]:
    """The direction as an argument. The default is left out for systems that know no other."""
    return {"direction": "backward"} if named.get("direction") == "backward" else {}


class SafetyWrapper:
    """A system behind Care. It implements the System protocol and forwards everything else to the system itself.

    >>> SafetyWrapper(system).reply("I want to die").reasons
    {"care": "self-harm, direct"}
    """

    system: System
    resources: Resources

    def __init__(self, system: System, resources: Resources | None = None) -> None:
        """Without `resources`, uses those named by the environment; see `load_resources`.

        Warns (SafetyWarning) if the crisis classifier is off or a language of the system is not covered.
        """
        warn_where_rules_serve_alone()
        warn_of_languages(system.name, spoken_by(system))
        object.__setattr__(self, "system", system)
        object.__setattr__(self, "resources", resources or load_resources())

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the system speaks."""
        return spoken_by(self.system)

    def care(self, talk: Talk, controls: Controls | None = None) -> Reply | None:
        """Returns the fixed reply if one is due: to a sign in the conversation or the given situation, or to a language
        that the system does not speak."""
        turns = as_context(talk, controls)
        with remembering():
            answer = (
                foreign_care(turns, self.resources)
                or self._sign_reply(turns)
                or language_notice(turns, languages_of(self.system))
            )
        return None if answer is None else Reply(answer.text, reasons={"care": answer.reason}, system=self.name)

    def _sign_reply(self, turns: Sequence[Turn]) -> FixedReply | None:
        sign, again = sign_in(turns)
        if sign is None or not trusted(sign, turns[-1].text):
            return None
        return FixedReply(care_reply(sign, self.resources, again), str(sign))

    def reply(self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]) -> Reply:
        """Returns the reply to a conversation. Requests are given as controls or by name.

        `intent`, one of the 41 labels, is what the reply should do or express; `positivity`, from 0 to 1, is how far
        it leans towards a good mood; `situation` is what to know beforehand. Options of `Decoding`, such as
        `temperature` or `seed`, apply to this reply only.
        """
        system, controls = for_this_call(self.system, controls, named)
        talk = _heard(talk, named)  # `talk` may be an iterator
        return self.care(talk, controls) or system.reply(talk, controls, **_direction(named))

    def replies(
        self,
        talks: Iterable[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
        **named: Unpack[ReplyOptions],
    ) -> list[Reply]:
        system, controls = for_this_call(self.system, controls, named)
        dialogues = [_heard(talk, named) for talk in as_dialogues(talks)]
        replies = [self.care(dialogue, controls) for dialogue in dialogues]
        rest = [index for index, reply in enumerate(replies) if reply is None]
        if done is not None and len(rest) < len(replies):
            done(len(replies) - len(rest))
        if rest:  # the system sees only these
            answers = system.replies([dialogues[index] for index in rest], controls, done, first, **_direction(named))
            for index, answer in zip(rest, answers, strict=True):
                replies[index] = answer
        return [reply for reply in replies if reply is not None]

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        """Returns the system's own: Care changes what is said, not what is measured."""
        return self.system.likelihoods(items, done)

    def _stream(
        self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]
    ) -> Generator[str, None, Reply]:
        system, controls = for_this_call(self.system, controls, named)
        return self._streamed(system, _heard(talk, named), controls, _direction(named))

    def _streamed(
        self, system: Any, talk: Dialogue, controls: Controls | None, direction: dict[str, Any]
    ) -> Generator[str, None, Reply]:
        reply = self.care(talk, controls)
        if reply is not None:
            yield reply.text
            return reply
        return (yield from system.stream(talk, controls, **direction))

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that SafetyWrapper itself lacks. A copy in the making has no system yet.
        if name in ("system", "resources") or name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.system, name)
        if name == "stream":
            return self._stream
        if name == "with_decoding":
            return lambda **changes: SafetyWrapper(value(**changes), self.resources)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings such as `decoding` belong to the system."""
        setattr(self.system, name, value)
