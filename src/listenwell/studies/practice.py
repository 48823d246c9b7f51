"""The practice item before the first task. It is the same for everyone and does not count."""

from __future__ import annotations

from typing import Any

from listenwell.labels.taxonomy import EMOTIONS
from listenwell.studies.kinds import AREAS, LEFT, Kind

TASK = "practice"
ITEM = "practice-1"

CONTEXT = (
    {"speaker": "speaker", "text": "Hi, Helen! How's it going?"},
    {"speaker": "listener", "text": "Good, thanks -- and you?"},
    {"speaker": "speaker", "text": "I've got an exam next week and need to start studying. Ugh."},
)
REPLIES = (
    "Oh. Good luck then!",
    "What kind of exam is it?",
    "I'm so happy for you. That's wonderful news.",
    "Don't worry. I'm sure you will do great!",
)
"""MEED2's warm-up (Figure 7a): the third reply does not fit the feeling."""
MISFIT = 2

CHINESE_CONTEXT = (
    {"speaker": "speaker", "text": "你好，海伦！最近怎么样？"},
    {"speaker": "listener", "text": "挺好的，谢谢。你呢？"},
    {"speaker": "speaker", "text": "我下周有考试，得开始复习了，唉。"},
)
CHINESE_REPLIES = (
    "哦，那祝你好运！",
    "是什么考试呀？",
    "我真为你高兴，这真是个好消息。",
    "别担心，你一定会考得很好的！",
)


def practice_task(kind: Kind, language: str) -> dict[str, Any]:
    """The task as the page gets it. `expected` has the correct answers, so that the page can give feedback."""
    context, texts = (CHINESE_CONTEXT, CHINESE_REPLIES) if language.startswith("zh") else (CONTEXT, REPLIES)
    shown = [texts[0], texts[MISFIT]] if kind.name == "ab" else list(texts)
    replies = [{"key": letter, "text": text} for letter, text in zip("ABCD", shown, strict=False)]
    if kind.name == "emotion" and not kind.picks_emotion:
        for reply in replies:
            reply["emotion"] = "anxious"
    item = {
        "id": ITEM,
        "context": [dict(turn) for turn in context],
        "reference": None,
        "replies": replies,
        "emotion_choices": list(EMOTIONS) if kind.picks_emotion else None,
        "expected": _expected(kind),
    }
    return {"id": TASK, "practice": True, "items": [item], "answered": []}


def practice_letters(kind: Kind) -> str:
    return "AB" if kind.name == "ab" else "ABCD"


def _expected(kind: Kind) -> dict[str, list[Any]] | None:
    if kind.name == "ab":
        return {"choice": [LEFT]}
    if kind.name == "drag":
        return {letter: [AREAS[2]] if place == MISFIT else list(AREAS[:2]) for place, letter in enumerate("ABCD")}
    if kind.name == "emotion" and not kind.picks_emotion:
        return {letter: [0 if place == MISFIT else 1] for place, letter in enumerate("ABCD")}
    return None
