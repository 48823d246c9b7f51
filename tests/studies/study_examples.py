"""Studies of each kind, as the server describes them to the page."""

from __future__ import annotations

from typing import Any

from listenwell.studies.kinds import BERT_JOINT_SCALES, EMOTION_SCALES, MIME_SCALES, STRATEGY_MEMORY_SCALES, Scale

WELCOME = [
    "Thank you for helping us. We compare programs that try to listen well, and only people can say how well they do.",
    "You will read short conversations in which somebody tells of something that happened, and rate the replies.",
]
INSTRUCTIONS = [
    "Please read each conversation from the beginning. Then look at how each reply continues it: does it understand "
    "what the speaker feels, and does it say something that helps or interests them?",
    "There is no right or wrong. The replies come from different programs, in a new order each time.",
]
CONTEXTS = [
    ["I finally finished my thesis last night. Five years!", "Five years is a long time. How do you feel?",
     "Honestly? Mostly empty. I thought I would be happier."],
    ["My neighbour's dog barks all night, and he just laughs about it."],
    ["My sister is coming home after two years abroad. I cleaned the whole flat, twice!"],
]  # fmt: skip
REPLIES = [
    "That emptiness after something so big is more common than people admit. What did these years give you?",
    "Congratulations! You must be very happy.",
    "I am sorry to hear that. I hope it gets better soon.",
    "What was it about?",
]
CHINESE_CONTEXT = [
    "我昨晚终于写完论文了，整整五年！",
    "五年真是很长的时间。你现在感觉怎么样？",
    "说实话，心里空空的。我还以为会更高兴一点。",
]
CHINESE_REPLIES = [
    "完成这么大的一件事之后感到空落落的，其实很常见。这些年里，它给你带来了什么？",
    "恭喜你！你一定很高兴吧。",
]


def item(number: int, replies: int, texts: tuple[list[str], list[str]] | None = None, **extra: Any) -> dict[str, Any]:
    """An item with this many replies; `texts` are a different context and replies, `emotion` the one to express."""
    emotion = extra.pop("emotion", None)
    context, offered = texts or (CONTEXTS[(number - 1) % len(CONTEXTS)], REPLIES)
    speakers = ("speaker", "listener")
    shown = [{"key": "ABCD"[place], "text": offered[(place + number - 1) % len(offered)]} for place in range(replies)]
    return {
        "id": f"i{number}",
        "context": [{"speaker": speakers[place % 2], "text": text} for place, text in enumerate(context)],
        "reference": None,
        "replies": [reply | ({"emotion": emotion} if emotion else {}) for reply in shown],
        "emotion_choices": None,
    } | extra


def study(kind: str, scales: tuple[Scale, ...] = (), **changes: Any) -> dict[str, Any]:
    described = {
        "kind": kind,
        "title": "How well do they listen?",
        "language": "en",
        "choices": [],
        "welcome": WELCOME,
        "instructions": INSTRUCTIONS,
        "scales": [scale.to_json() for scale in scales],
    }
    return described | changes


STUDIES: dict[str, tuple[dict[str, Any], int]] = {
    "likert": (study("likert", MIME_SCALES), 2),
    "likert-five-anchors": (study("likert", BERT_JOINT_SCALES), 1),
    "likert-long": (study("likert", STRATEGY_MEMORY_SCALES), 2),
    "likert-long-one": (study("likert", STRATEGY_MEMORY_SCALES), 1),
    "ab": (study("ab", choices=["left", "right", "tie", "both-bad"]), 2),
    "drag": (study("drag", choices=["good", "okay", "bad"]), 4),
    "emotion": (study("emotion", EMOTION_SCALES), 2),
}
"""A description and the number of replies per item, by a name."""
