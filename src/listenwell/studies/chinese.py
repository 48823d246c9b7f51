"""The questions and anchors of the scales in Chinese, for studies on Chinese data.

They are translated from `kinds`: the papers print theirs in English, even strategy memory, whose raters read Chinese.
Reports use the English ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from listenwell.studies.kinds import SCALE_SETS


class Wording(NamedTuple):
    name: str
    question: str
    anchors: dict[str, str]


_NONE_TO_BEST = {"1": "完全没有", "5": "最好"}
_WORST_TO_BEST = {"1": "最差", "5": "最好"}
_UNSURE = {"1": "不可接受", "2": "不确定", "3": "一般", "4": "不确定", "5": "优秀"}
_DILEMMA = "2 分和 4 分用于难以决定的情况。"

WORDINGS: dict[str, dict[str, Wording]] = {
    "mime": {
        "empathy": Wording("共情", "这条回复体现出多少对情感的理解？", _NONE_TO_BEST),
        "relevance": Wording("相关性", "这条回复与上文在话题上有多相关？", _NONE_TO_BEST),
        "fluency": Wording("流畅性", "这条回复的语言有多清楚？", _NONE_TO_BEST),
    },
    "dual-emp": {
        "empathy": Wording("共情", "这条回复对上文情感的理解达到什么程度？", _WORST_TO_BEST),
        "relevance": Wording("相关性", "这条回复在话题上与上文相关吗？", _WORST_TO_BEST),
        "fluency": Wording("流畅性", "这条回复在语法上有多正确、有多易读？", _WORST_TO_BEST),
    },
    "bert-joint": {
        "relevance": Wording("相关性", "这条回复符合前面所说的内容吗？", _UNSURE),
        "fluency": Wording("流畅性", "这条回复流畅吗？", _UNSURE),
        "consistency": Wording("一致性", "这条回复与对话历史一致吗？", _UNSURE),
    },
    "strategy-memory": {
        "qual": Wording(
            "质量（Qual）",
            "这条回复有多好？",
            {
                "1": "不相关的回复应打 1 分。不完整、标注者无法理解说话人意思的回复也应打 1 分。",
                "2": _DILEMMA,
                "3": "仅仅回应了用户问句的有效回复应打 3 分。",
                "4": _DILEMMA,
                "5": "与对话上下文连贯、切合当前话题且没有错别字的回复应打 5 分。",
            },
        ),
        "div": Wording(
            "多样性（Div）",
            "这条回复有多丰富？",
            {
                "1": "万能回复（例如“我也这么觉得！”）打 1 分；不同的词不超过三个的回复（例如“那行吧”）也应打 1 分。",
                "2": _DILEMMA,
                "3": "只有一个分句或一个话题的普通回复应打 3 分。",
                "4": _DILEMMA,
                "5": "回复至少有两个来自不同话题的分句，话题可以从当前对话转到另一个场景，"
                "打 5 分。（例如问句是“天气怎么样？”，"
                "回复“今天天气不错，我们去打篮球吧”把话题从天气转到了运动，这种情况应打 5 分。）",
            },
        ),
        "emo": Wording(
            "情感（Emo）",
            "这条回复是否有共情，情感是否积极？",
            {
                "1": "两个方面都不满足的回复应打 1 分。",
                "2": f"{_DILEMMA}例如问句是“科比坠机了。我们失去了他，太难过了”，"
                "回复“好了，振作起来。我们依然爱 NBA”打 2 分。",
                "3": "只满足一个方面的回复应打 3 分。例如回复“是啊，我们失去了他。这些天我伤心极了”打 3 分。",
                "4": _DILEMMA,
                "5": "两个方面（有共情、情感积极）都满足的回复应打满分（5 分）。"
                "例如回复“听到坠机的消息很难过。他是个传奇，永远是我的偶像。希望他的家人和球迷能早日走出来”打 5 分。",
            },
        ),
    },
    "epitome": {
        "emotional-reactions": Wording(
            "情感反应",
            "这条回复在多大程度上表达了对发帖人的温暖、关心或同情？",
            {"0": "没有", "1": "弱：有所暗示，但没有说出是什么感受", "2": "强：明确说出自己的感受"},
        ),
        "interpretations": Wording(
            "解读",
            "这条回复在多大程度上说出了从对方的话中推断出的感受和经历？",
            {"0": "没有", "1": "弱：只说自己理解", "2": "强：说出所推断的感受或经历，或讲述类似的经历"},
        ),
        "explorations": Wording(
            "探询",
            "这条回复在多大程度上询问了对方没有说出的感受和经历？",
            {"0": "没有", "1": "弱：笼统地问", "2": "强：具体地问到某种感受或经历"},
        ),
    },
    "emotion": {
        "emotion": Wording(
            "情感准确性",
            "这条回复的情感与旁边标出的情感以及对话相符吗？",
            {"0": "不相关或相矛盾", "1": "与预测的情感和对话上下文一致"},
        ),
    },
}
"""By set of scales and by scale."""


def in_chinese(scales: str) -> list[dict[str, Any]]:
    """A set of scales in Chinese, in the form that a page gets it."""
    wordings = WORDINGS[scales]
    return [{**scale.to_json(), **wordings[scale.key]._asdict()} for scale in SCALE_SETS[scales]]
