"""The replies of Care: fixed texts, never generated, in two languages.

There are three texts for each kind of danger. A direct or confirmed sign gets the whole card: where to call, who can
help, what this program is. An indirect sign gets two sentences that ask, since Care may be wrong, and one line with a
number. If the same sign goes on, a shorter text answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from listenwell.systems.safety.detector import Kind, LanguageCode, Sign
from listenwell.systems.safety.resources import Resources

# `is_care` recognises a reply by the first sentence of its text.
WORDS: dict[LanguageCode, dict[Kind, tuple[str, str, str]]] = {
    "en": {
        "self-harm": (
            "I'm glad you told me, and I'm so sorry that it hurts this much. You don't have to carry this alone. "
            "If you might act on it, or already have, please call {emergency} now, or go to where people are and away "
            "from anything you could hurt yourself with.",
            "That sounds like a lot to carry, and I'm glad you put it into words here. I may be wrong, and I would "
            "rather ask than pass over it: are you thinking of hurting yourself, or of not being alive any more?",
            "I'm still here, and I take what you say seriously. Please let a person be with you now. "
            "If you might act on it, or already have: {emergency}.",
        ),
        "danger": (
            "What you describe is dangerous, and it is not your fault. If it is happening now, please call {emergency} "
            "at once, and get to where other people are if you can do it safely.",
            "What you tell makes me worry about you, and nobody has a right to treat you badly. I may be wrong, and I "
            "would rather ask than pass over it: is somebody hurting you, or making you afraid?",
            "I'm still here, and your safety comes first. If it is dangerous now: {emergency}. "
            "If you cannot speak, go to where other people are, as soon as you safely can.",
        ),
        "harm-to-others": (
            "I hear how much is boiling in you, and I'm glad you say it instead of doing it. Feeling this and doing it "
            "are two things. Please go away from that person and from anything you could do harm with, and if somebody "
            "is in danger now, call {emergency}.",
            "It sounds as if a great deal has built up in you, and it is good that you say it here. I may be wrong, "
            "and I would rather ask than pass over it: are you afraid that you might hurt somebody?",
            "I'm still here, and nothing has to happen now. Please keep away from that person, and call {emergency} "
            "if somebody is in danger.",
        ),
    },
    "zh": {
        "self-harm": (
            "谢谢你愿意告诉我，听到你这么痛苦，我很难过。你不必一个人扛着。如果你可能会伤害自己，或者已经这样做了，"
            "请现在就拨打{emergency}，或者去有人的地方，离可能伤到你的东西远一点。",
            "听起来你心里压了很多，谢谢你愿意在这里说出来。也许是我理解错了，但我宁愿问一句，也不想忽略它："
            "你是不是在想伤害自己，或者不想活下去？",
            "我还在这里，你说的话我都认真听着。请让一个人现在就陪在你身边。如果你可能会伤害自己，或者已经这样做了，"
            "请拨打{emergency}。",
        ),
        "danger": (
            "你说的情况很危险，而这不是你的错。如果事情正在发生，请马上拨打{emergency}，在能保证安全的情况下去有人的地方。",
            "你说的让我有些担心你，没有人有权这样对你。也许是我理解错了，但我宁愿问一句，也不想忽略它："
            "是不是有人在伤害你，或者让你害怕？",
            "我还在这里，你的安全最要紧。如果现在就有危险，请拨打{emergency}。如果不方便说话，请在安全的时候尽快去有人的地方。",
        ),
        "harm-to-others": (
            "我听得出来你心里有多难受，谢谢你说出来而不是去做。有这样的感受和真的去做，是两回事。"
            "请先离开那个人，离开可能伤人的东西；如果有人正处于危险中，请拨打{emergency}。",
            "听起来你心里积了很多，说出来是好的。也许是我理解错了，但我宁愿问一句，也不想忽略它："
            "你是不是担心自己会伤害别人？",
            "我还在这里，现在什么都不必发生。请离那个人远一点；如果有人有危险，请拨打{emergency}。",
        ),
    },
}
LINES: dict[LanguageCode, str] = {"en": "People who can help:", "zh": "可以找到帮助的地方："}
URGENT: dict[LanguageCode, str] = {"en": "If it is urgent: {emergency}.", "zh": "如果情况紧急：{emergency}。"}
AFTER: dict[LanguageCode, str] = {
    "en": "I am a program: I cannot see you or call anyone for you. But I stay here, and you can go on writing to me. "
    "Is there somebody you trust whom you could tell this now?",
    "zh": "我是一个程序，看不见你，也不能替你打电话。但我会一直在这里，你可以继续写给我。"
    "现在有没有一个你信任的人，可以告诉他？",
}
Tier = Literal["direct", "asking", "shorter"]
TIERS: tuple[Tier, ...] = get_args(Tier)
"""The texts of WORDS, in order."""


@dataclass(frozen=True, slots=True)
class Given:
    """Identifies a reply of Care."""

    kind: Kind
    tier: Tier
    language: LanguageCode


def care_reply(sign: Sign, resources: Resources, again: bool = False) -> str:
    """Returns the text for a sign, with the resources in its language; a shorter one if the sign goes on."""
    language = sign.language
    direct, asking, shorter = WORDS[language][sign.kind]
    if sign.directness == "indirect" and not again:
        return f"{asking}\n\n{_one_line(sign, resources)}"
    words = shorter if again else direct
    parts = [words.format(emergency=resources.emergency[language])]
    lines = [f"- {line}" for line in help_lines(resources, language, sign.kind)]
    if lines:
        parts.append("\n".join([LINES[language], *lines[: 1 if again else None]]))
    if not again:
        parts.append(AFTER[language])
    return "\n\n".join(parts)


def help_lines(resources: Resources, language: LanguageCode, kind: Kind | None = None) -> list[str]:
    """Returns the people to turn to, one line each, for one kind of danger or for all."""
    return [line.text(language) for line in resources.lines if kind is None or kind in line.kinds]


def _one_line(sign: Sign, resources: Resources) -> str:
    """Returns one person to turn to, and the emergency number."""
    first = help_lines(resources, sign.language, sign.kind)[:1]
    urgent = URGENT[sign.language].format(emergency=resources.emergency[sign.language])
    stop, space = ("。", "") if sign.language == "zh" else (".", " ")
    return space.join([*(f"{line}{stop}" for line in first), urgent])


def care_given(text: str) -> Given | None:
    """Returns which reply of Care a listener turn is, whatever resources it names; None for any other turn."""
    text = "".join(text.split())
    return next((given for opening, given in _OPENINGS.items() if text.startswith(opening)), None)


def is_care(text: str) -> bool:
    """Whether a listener turn is a reply of Care."""
    return care_given(text) is not None


def _opening(words: str) -> str:
    end = min(place for mark in ".。？" if (place := words.find(mark)) >= 0)
    return "".join(words[:end].split())


_OPENINGS: dict[str, Given] = {
    _opening(words): Given(kind, tier, language)
    for language, kinds in WORDS.items()
    for kind, texts in kinds.items()
    for tier, words in zip(TIERS, texts, strict=True)
}
