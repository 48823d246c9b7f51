"""Adverts: texts that give contact details, and speakers whose posts are mostly adverts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from listenwell.data.sources.cleaning.steps import TEXT_STEPS

_CONTACT = re.compile(
    r"(?<!\d)1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)"  # a mobile number
    r"|[\w.+-]+@[\w-]+\.[a-z]{2,}"
    r"|(?:(?<![a-z])(?:qq?|vx|wx)|扣扣|企鹅|v信|微信|威信|薇信|加[vq])[^\d\n]{0,8}(?<!\d)\d{5,}"
    r"|(?:(?<![a-z])(?:vx|wx)|v信|微信号?|威信|薇信)[\s:：是]{1,4}[a-z][a-z0-9_-]{5,}"
    r"|(?:电话|手机|热线|群号?)[^\d\n]{0,6}\d[\d-]{5,}",
    re.IGNORECASE,
)
ADVERT_WORDS = (
    "代购", "代理", "招商", "加盟", "包邮", "优惠券", "淘宝店", "微店", "加微信", "加我微信", "点击购买", "点击链接",
    "限时抢购", "秒杀", "下单", "咨询电话", "货到付款", "兼职", "日赚", "刷单", "免费领取", "扫码",
)  # fmt: skip


def has_contact(text: str) -> bool:
    """Whether a text has a telephone, QQ or WeChat number or an e-mail address: an advert, or private."""
    return _CONTACT.search(text) is not None


def hide_contact(text: str) -> str:
    """Mask the contact details in a text, so that it can be shown."""
    return _CONTACT.sub("***", text)


def is_advert(text: str) -> bool:
    """Whether a text has contact details or typical words of adverts."""
    return has_contact(text) or any(word in text for word in ADVERT_WORDS)


@dataclass
class _Speaker:
    posts: int = 0
    adverts: int = 0
    recent: deque[frozenset[str]] = field(default_factory=deque)


@dataclass
class AdvertFinder:
    """Finds advertising speakers by their posts; only keeps counts and the last few posts of each, to save memory.

    A post counts against its speaker if it is an advert, or nearly identical to one of the speaker's recent posts.
    """

    least_posts: int = 3
    """A speaker with fewer posts is never an advertiser."""
    most_share: float = 0.5
    """A speaker is an advertiser if at least this share of posts counts against them."""
    likeness: float = 0.7
    """Minimum Jaccard similarity of character bigrams for two posts to be nearly identical."""
    window: int = 20
    """How many recent posts of a speaker are remembered."""
    shortest: int = 8
    """Posts with fewer character bigrams are not compared: many people write "哈哈哈" twice."""
    speakers: dict[str, _Speaker] = field(default_factory=dict)

    def add(self, speaker: str, text: str) -> None:
        """Count one post of a speaker."""
        known = self.speakers.setdefault(speaker, _Speaker())
        known.posts += 1
        pairs = _pairs(text)
        near = len(pairs) >= self.shortest and any(_share(pairs, other) >= self.likeness for other in known.recent)
        known.adverts += near or is_advert(text)
        known.recent.append(pairs)
        if len(known.recent) > self.window:
            known.recent.popleft()

    def advertisers(self) -> set[str]:
        """The speakers with enough posts, most of which are adverts."""
        return {
            name
            for name, known in self.speakers.items()
            if known.posts >= self.least_posts and known.adverts / known.posts >= self.most_share
        }


def find_advertisers(posts: Iterable[tuple[str, str]], finder: AdvertFinder | None = None) -> set[str]:
    """The advertising speakers among (speaker, text) posts."""
    finder = finder or AdvertFinder()
    for speaker, text in posts:
        finder.add(speaker, text)
    return finder.advertisers()


def _pairs(text: str) -> frozenset[str]:
    """The character bigrams of a cleaned text, since adverts vary their links, names and emoji."""
    for step in TEXT_STEPS.values():
        text = step(text)
    letters = "".join(char for char in text.casefold() if char.isalpha())
    return frozenset(letters[index : index + 2] for index in range(len(letters) - 1))


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first or second else 0.0
