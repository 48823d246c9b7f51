"""The closed list of stock phrases that define a bland Chinese reply.

A reply is bland if it is nothing but stock phrases: "哈哈，好的。" is, "好的，你在哪里买的？" is not. Changing the list
changes the numbers: also increment LIST, which is part of the signature.
"""

from __future__ import annotations

import re
import unicodedata

LIST = "zh1"

_PARTICLE = r"[啊呀吧呢吗哦噢喔嘛啦哈了的呵哟耶么诶唉哎嗯]*"

_DEGREE = r"(?:真的|实在|确实|好|很|太|真|非常|挺|蛮|多么|多|这么|那么|超|超级|特别|有点)*"

_QUALITY = (
    r"(?:好|棒|赞|开心|高兴|难过|伤心|可怜|可惜|遗憾|可爱|漂亮|美|厉害|牛|有意思|有趣|好玩|好看|好笑|搞笑|不错|幸福|羡慕|感动|"
    r"无语|恐怖|可怕|郁闷|悲剧|悲催|惨|糟糕|辛苦|不容易|正常|对|酷|帅|强|行|喜欢|期待)"
)

_CLAUSES = (
    # Sounds, single words, and laughter.
    r"[哈呵嘿嘻啊哦噢喔嗯恩唔哎唉诶哇呀额呃]+|[呜嗷]+|哎[呀哟]|天[哪呐啊]|我的天|我去|晕|汗",
    r"(?:是|对|好|行|可以|没错|当然|确实|真的|嗯|不是|没有|不|没|有|必须|肯定|一定|原来如此|原来是这样)",
    r"(?:你好|您好|早安|早上好|晚安|午安|再见|拜拜|谢谢(?:你|您|大家)?|多谢|感谢|不客气|不用谢|没关系|没事|没问题)",
    r"(?:我)?(?:也)?(?:不知道|不清楚|不懂|不明白|知道|明白|懂|了解)",
    r"(?:我)?也?(?:是|一样|这么觉得|这样觉得|这么想|觉得|同意|赞同|同感|想|要|有|喜欢)|同感|同意|\+1|支持|顶|赞",
    # A verdict on nothing in particular: "太好了", "真可怜", "好羡慕你".
    rf"(?:这|那|这个|那个|你|我|这样|那样)?(?:也|就|还|都|是|可)*{_DEGREE}{_QUALITY}(?:你|您)?",
    # Sorrow, comfort, joy and wishes.
    r"(?:我)?(?:很|非常|真的)*(?:抱歉|对不起|不好意思|遗憾)(?:听到(?:这个|这些)?(?:消息)?)?",
    r"(?:听到(?:这个|这些)?(?:消息)?)?(?:我)?(?:很|非常|真的)*(?:抱歉|难过|遗憾|替你难过|为你难过)",
    r"(?:我)?(?:真|很|好)?(?:为|替)你(?:感到)?(?:高兴|开心|难过|骄傲)",
    r"(?:别|不要|不用)(?:难过|伤心|担心|生气|哭|灰心|着急)|(?:会|都会|一切都会|一定会)(?:好|好起来|过去)",
    r"加油|努力|挺住|坚持|保重|抱抱|摸摸|摸头|(?:恭喜|祝贺)(?:你|您|恭喜)?|祝(?:你|您)?(?:好运|幸福|顺利|快乐|开心)",
    r"(?:怎么|咋)(?:了|啦|回事|会这样|办)?|为什么|为啥|什么|真的假的|是吗|是么|然后",
)

_STOCK = re.compile("|".join(f"(?:{clause}){_PARTICLE}" for clause in _CLAUSES))


def is_bland(text: str) -> bool:
    """Is the reply nothing but stock phrases? A reply without words is not bland."""
    # In Chinese, punctuation separates clauses; a space within one means nothing.
    spaced = unicodedata.normalize("NFKC", text).lower()
    clauses = [clause for part in re.split(r"[^\w\s+]+", spaced) if (clause := re.sub(r"\s+", "", part))]
    return bool(clauses) and all(_STOCK.fullmatch(clause) for clause in clauses)
