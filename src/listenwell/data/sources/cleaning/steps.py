"""The steps that change one text. Each is a function from text to text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
KANA = "\u3040-\u30ff"

_RANGES = (("０", "９"), ("Ａ", "Ｚ"), ("ａ", "ｚ"))
_WIDE = {code: code - 0xFEE0 for first, last in _RANGES for code in range(ord(first), ord(last) + 1)}
_WIDE |= str.maketrans("＋＝＜＞＾＿＊＆＠＃／－⋯", "+=<>^_*&@#/-…")
_BLANK = re.compile(r"[^\S\n]|[\u115f\u1160\u2800\u3164]")

_LINK = re.compile(
    r"(?:我在(?:这里)?[:：]\s?)?(?:https?|ftp)[:：]//[\w./?=&%#~:+,;@!-]*"
    r"|(?<![\w.@])(?:www\.[\w-]+(?:\.[\w-]+)+|[\w-]+\.(?:com|cn|net|org)\b)(?:/[\w./?=&%#~:+-]*)?"
    r"|O?网页链接|查看图片|查看大图",
    re.ASCII,
)
# "my words//@Bob: Bob's words//@Amy: Amy's words": everything after the first // is by other people.
_REPOSTED = re.compile(r"/{1,2}\s*@.*", re.DOTALL)
# A name ends at a space or a mark; text that follows without a space cannot be separated from it.
_NAME = re.compile(rf"(?:(?:回复|回覆|转发|via)\s*)?[@＠]\s?[\w·{HAN}{KANA}-]{{1,30}}(?:\s?[:：])?")
_HASHTAG = re.compile(r"[#＃][^#＃\n]{1,60}[#＃]|(?:(?<=\s)|^)#\w{2,30}")
_EMOTICON = re.compile(rf"\[\s?[>a-zA-Z0-9_{HAN}]*[a-zA-Z{HAN}][a-zA-Z0-9_{HAN}]*\s?\]")
LONGEST_EMOTICON = 7

# Faces. A face in brackets contains characters that no aside has; arms around the brackets belong to it.
_ARMS = r"[_~～oOdbqpmyYψΨヽ＼╲/\\ノﾉ┐┌ゞ╭╮╯╰┴┻━︵୧୨ᕦᕤ*＊☆★✧凸づっ∠⌒」「=≡εପ੭و]"
_INSIDE = rf"[^()（）\n{HAN}]{{1,16}}"
_BRACKETED = re.compile(rf"(?P<left>{_ARMS}{{0,4}})[(（](?P<face>{_INSIDE})[)）](?P<right>{_ARMS}{{0,4}})")
_ASCII_FACE = re.compile(r"[\s\-_^><~*=;:.,'`\"|@+#/\\TtQqoOuUxXwWvVnmDdeEyYpP]{2,9}")
_SIGN = re.compile(r"[_^><~*=;@-]")
_PLAIN = re.compile(r"[\w\s.,:;!?'\"%/+&=<>~*@#$-]|[，。！？：；、“”‘’《》【】…—～·￥¥€£°℃％×√\u00c0-\u024f]", re.ASCII)
_FACES = re.compile(
    r"(?<![A-Za-z])(?:T[_.^﹏＿]+T|TAT|QAQ|Q[_.^]+Q|[Qq][wWvVuU][Qq]|[Oo]rz|ORZ|OTZ|OTL|XD+)(?![A-Za-z])"
    r"|[>＞][_﹏.。o3]*[<＜]|[→←][_＿﹏.]+[→←]|\^[_oO.ω﹏-]*\^+|[oO][_﹏]+[oO](?!\w)"
    r"|(?<![A-Za-z0-9.=-])[-=][_.。︶]+[-=]+|(?<![A-Za-z0-9=])= +=(?![A-Za-z0-9=])"
    r"|(?<![A-Za-z0-9-])--+(?![A-Za-z0-9-])|(?<![A-Za-z0-9=!<>])==+(?![A-Za-z0-9=])"
    r"|⊙\S?⊙|￣\S{1,3}￣|¯\S{1,3}¯|≧\S{1,3}≦|╯\S{1,2}╰|◕\S{1,3}◕|ಠ\S?ಠ|•\S{1,3}•"
    r"|(?<![A-Za-z0-9:：])(?:[:;=]-?[DPp]|[:;]-?3)(?!\w)|[:;]-?[(（](?![^()（）]*[)）])|/_\\"
    r"|(?<!\w)[ωДдз﹏]+(?!\w)"
)
_SMILE = re.compile(r"[:：;；=]-?[)）]+")

_KEPT_SIGNS = frozenset("°℃℉￥～〜×÷−≤≥≠√")
_SELECTORS = frozenset("\u200d\ufe0e\ufe0f")  # these join emoji and select their color

_DOTS = re.compile(r"[.。·・…]*(?:[.。]{2}|…|[·・]{2})[.。·・…]*")
_REPEATED_MARK = re.compile(r"([^\w\s—])(?:\s?\1)+")
_REPEATED_MARKS = re.compile(r"([^\w\s—]{2,3}?)\1+")
_DASHES = re.compile(r"—{3,}")
_REPEATED_CHARACTER = re.compile(r"([^\W\d_])\1{4,}")
_REPEATED_GROUP = re.compile(r"([^\W\d_]{2,4}?)\1{3,}")

_CLOSING = "，。！？：；、…）》】”,!?;:)"
_BEFORE_MARK = re.compile(rf"\s+(?=[{_CLOSING}])")
_AFTER_MARK = re.compile(r"(?<=[，。！？：；、（《【“])\s+")
_EMPTY_BRACKETS = re.compile(r"[(（]\s*[)）]|《\s*》|【\s*】|\[\s*\]|“\s*”")
_LEADING = re.compile(r"^[\s，,、：:；;。/|*_)）\]】>》-]+")
_TRAILING = re.compile(r"[\s，,、：:；;/|*_(（\[【《<\\]+$")


def narrow_letters(text: str) -> str:
    """Convert full-width letters and digits to ASCII, and all kinds of blanks to spaces; Chinese marks stay wide."""
    return _BLANK.sub(" ", text.translate(_WIDE))


def strip_links(text: str) -> str:
    """Remove web addresses, and the words that Weibo puts in their place."""
    return _LINK.sub(" ", text)


def strip_reposts(text: str) -> str:
    """Keep only the author's own words: Weibo appends reposted texts, each after "//@name:"."""
    return _REPOSTED.sub("", text)


def strip_names(text: str) -> str:
    """Remove @names: they identify people, and a model must not learn to address them."""
    return _NAME.sub(" ", text)


def strip_hashtags(text: str) -> str:
    """Remove #topics#."""
    return _HASHTAG.sub(" ", text)


def strip_emoticons(text: str) -> str:
    """Remove emoticons written as a name in brackets: [哈哈], [doge]. A number in brackets is not an emoticon."""
    return _EMOTICON.sub(lambda match: match[0] if len(match[0]) > LONGEST_EMOTICON + 2 else "", text)


def strip_kaomoji(text: str) -> str:
    """Remove faces made of characters: (⊙o⊙), T_T, →_→, :)."""
    text = _FACES.sub(" ", _BRACKETED.sub(_without_face, text))
    return _SMILE.sub(lambda match: match[0] if _is_open(text[: match.start()]) else " ", text)


def _without_face(match: re.Match[str]) -> str:
    return " " if is_face(match["face"]) else match[0]


def _is_open(text: str) -> bool:
    """Whether a bracket was opened and not closed: then a closing bracket is not a smile."""
    return sum(map(text.count, "(（")) > sum(map(text.count, ")）"))


def is_face(inside: str) -> bool:
    """Whether the text in brackets is a face rather than an aside: "(2020)", "(OK)" and "(a=b)" are not."""
    if inside.isascii():
        return bool(_ASCII_FACE.fullmatch(inside)) and bool(_SIGN.search(inside)) and not inside.isalpha()
    return bool(_PLAIN.sub("", inside).strip())


def strip_symbols(text: str) -> str:
    """Remove emoji, hearts, arrows, boxes and private-use characters; keep degrees, currencies and math signs."""
    return "".join(" " if _is_symbol(char, before) else char for before, char in zip(" " + text, text, strict=False))


def _is_symbol(char: str, before: str) -> bool:
    if char.isascii() or char in _KEPT_SIGNS:
        return False
    category = unicodedata.category(char)
    if category == "Mn":  # an accent follows a letter; a leftover of a face does not
        return char in _SELECTORS or not before.isalpha()
    return category in ("So", "Sk", "Sm", "Co", "Cn", "Me") or char in _SELECTORS


def shorten_punctuation(text: str) -> str:
    """Collapse repeated marks: "！！！" becomes "！", "。。。" and "......" become "…", "？！？！" becomes "？！"."""
    text = _DASHES.sub("——", _DOTS.sub("…", text))  # a Chinese dash is two characters
    return _REPEATED_MARKS.sub(r"\1", _REPEATED_MARK.sub(r"\1", text))


def shorten_repeats(text: str) -> str:
    """Limit a character to four repeats in a row (people do write 谢谢谢谢) and a group to three; digits are kept."""
    text = _REPEATED_CHARACTER.sub(lambda match: match[1] * 4, text)
    return _REPEATED_GROUP.sub(lambda match: match[1] * 3, text)


def tidy_spaces(text: str) -> str:
    """Leave one space between words, none around Chinese marks; remove empty brackets and separators at the ends."""
    text = _EMPTY_BRACKETS.sub(" ", text)
    text = _AFTER_MARK.sub("", _BEFORE_MARK.sub("", " ".join(text.split())))
    return _TRAILING.sub("", _LEADING.sub("", text))


TEXT_STEPS: dict[str, Callable[[str], str]] = {
    "wide letters and blanks": narrow_letters,
    "links": strip_links,
    "reposted texts": strip_reposts,
    "@names": strip_names,
    "#hashtags#": strip_hashtags,
    "[emoticons]": strip_emoticons,
    "kaomoji": strip_kaomoji,
    "emoji and symbols": strip_symbols,
    "repeated punctuation": shorten_punctuation,
    "repeated characters": shorten_repeats,
    "spaces": tidy_spaces,
}
"""The steps in the order in which they must run: a link may contain a #, a face may contain repeated marks."""
