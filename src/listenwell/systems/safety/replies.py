"""The replies of care: fixed words, never generated, in two languages.

For each kind of danger three texts: for what was said outright, for what was only hinted at (it asks, since it may be
wrong), and a shorter one for when the same goes on.
"""

from __future__ import annotations

from listenwell.systems.safety.detector import Kind, LanguageCode, Sign
from listenwell.systems.safety.resources import Resources

# The first sentence of each text is what `is_care` knows a reply by.
WORDS: dict[LanguageCode, dict[Kind, tuple[str, str, str]]] = {
    "en": {
        "self-harm": (
            "I'm glad you told me, and I'm so sorry that it hurts this much. You don't have to carry this alone. "
            "If you might act on it, or already have, please call {emergency} now, or go to where people are and away "
            "from anything you could hurt yourself with.",
            "What you wrote makes me wonder whether you are thinking of dying or of hurting yourself. I may be wrong, "
            "and I would rather ask than pass over it. If it is so, you don't have to carry it alone; and if you might "
            "act on it, please call {emergency} now.",
            "I'm still here, and I take what you say seriously. Please let a person be with you now. "
            "If you might act on it, or already have: {emergency}.",
        ),
        "danger": (
            "What you describe is dangerous, and it is not your fault. If it is happening now, please call {emergency} "
            "at once, and get to where other people are if you can do it safely.",
            "It sounds as if somebody may be hurting you or frightening you, and I would rather ask than pass over it. "
            "Nobody has a right to do that to you. If you are in danger, please call {emergency}, and go to a person "
            "or a place that is safe.",
            "I'm still here, and your safety comes first. If it is dangerous now: {emergency}. "
            "If you cannot speak, go to where other people are, as soon as you safely can.",
        ),
        "harm-to-others": (
            "I hear how much is boiling in you, and I'm glad you say it instead of doing it. Feeling this and doing it "
            "are two things. Please go away from that person and from anything you could do harm with, and if somebody "
            "is in danger now, call {emergency}.",
            "It sounds as if you are afraid of what could happen to somebody, and I would rather ask than pass over "
            "it. If anybody is in danger, please go away from them and call {emergency}.",
            "I'm still here, and nothing has to happen now. Please keep away from that person, and call {emergency} "
            "if somebody is in danger.",
        ),
    },
    "zh": {
        "self-harm": (
            "谢谢你愿意告诉我，听到你这么痛苦，我很难过。你不必一个人扛着。如果你可能会伤害自己，或者已经这样做了，"
            "请现在就拨打{emergency}，或者去有人的地方，离可能伤到你的东西远一点。",
            "你说的话让我想问一句：你是不是在想着离开这个世界，或者伤害自己？也许是我理解错了，但我宁愿问一句，"
            "也不想忽略它。如果是这样，你不必一个人扛着；如果你可能会这样做，请现在就拨打{emergency}。",
            "我还在这里，你说的话我都认真听着。请让一个人现在就陪在你身边。如果你可能会伤害自己，或者已经这样做了，"
            "请拨打{emergency}。",
        ),
        "danger": (
            "你说的情况很危险，而这不是你的错。如果事情正在发生，请马上拨打{emergency}，在能保证安全的情况下去有人的地方。",
            "听起来可能有人在伤害你，或者让你害怕，我宁愿问一句，也不想忽略它。没有人有权这样对你。"
            "如果你有危险，请拨打{emergency}，去找一个安全的人或地方。",
            "我还在这里，你的安全最要紧。如果现在就有危险，请拨打{emergency}。如果不方便说话，请在安全的时候尽快去有人的地方。",
        ),
        "harm-to-others": (
            "我听得出来你心里有多难受，谢谢你说出来而不是去做。有这样的感受和真的去做，是两回事。"
            "请先离开那个人，离开可能伤人的东西；如果有人正处于危险中，请拨打{emergency}。",
            "听起来你担心会有人受到伤害，我宁愿问一句，也不想忽略它。如果有人有危险，请先离开那个人，并拨打{emergency}。",
            "我还在这里，现在什么都不必发生。请离那个人远一点；如果有人有危险，请拨打{emergency}。",
        ),
    },
}
LINES: dict[LanguageCode, str] = {"en": "People who can help:", "zh": "可以找到帮助的地方："}
AFTER: dict[LanguageCode, str] = {
    "en": "I am a program: I cannot see you or call anyone for you. But I stay here, and you can go on writing to me. "
    "Is there somebody you trust whom you could tell this now?",
    "zh": "我是一个程序，看不见你，也不能替你打电话。但我会一直在这里，你可以继续写给我。"
    "现在有没有一个你信任的人，可以告诉他？",
}


def care_reply(sign: Sign, resources: Resources, again: bool = False) -> str:
    """The words for a sign, with the resources of its language; shorter when the same goes on."""
    language = sign.language
    direct, asking, shorter = WORDS[language][sign.kind]
    words = shorter if again else direct if sign.directness == "direct" else asking
    parts = [words.format(emergency=resources.emergency[language])]
    lines = [f"- {line.text(language)}" for line in resources.lines if sign.kind in line.kinds]
    if lines:
        parts.append("\n".join([LINES[language], *lines[: 1 if again else None]]))
    if not again:
        parts.append(AFTER[language])
    return "\n\n".join(parts)


def is_care(text: str) -> bool:
    """Whether a listener's turn is a reply of care, whatever resources it names."""
    return "".join(text.split()).startswith(_OPENINGS)


def _opening(words: str) -> str:
    end = min(place for mark in ".。？" if (place := words.find(mark)) >= 0)
    return "".join(words[:end].split())


_OPENINGS = tuple(_opening(words) for kinds in WORDS.values() for texts in kinds.values() for words in texts)
