"""The closed word lists that the same-speaker classifier uses.

Function words, auxiliaries, answers, greetings and a few verbs of speech, listed here rather than learned: a shipped
model must not reveal its training texts, and who speaks next does not depend on rare words.
"""

from __future__ import annotations

_ENGLISH_CLASSES = {
    "i": "i i'm i've i'll i'd me my mine myself",
    "you": "you you're you've you'll you'd your yours yourself ya",
    "he": "he she he's she's he'd she'd he'll she'll him her his hers",
    "they": "they they're they've they'll them their",
    "we": "we we're we've we'll us our let's ours",
    "it": "it it's its that that's this these those it'll there there's here here's",
    "wh": "what who where when why how what's who's where's how's which whose",
    "aux": "do does did is are was were can could will would have has had should am don't isn't aren't didn't can't "
    "won't wasn't doesn't haven't may might must couldn't wouldn't shouldn't been be being gonna wanna gotta",
    "yes": "yes yeah yep sure okay ok right exactly absolutely fine alright definitely course",
    "no": "no nope not never nothing nobody",
    "link": "and but so because or then 'cause if though although unless until while since than as",
    "oh": "oh ah ooh wow uh um huh hmm whoa aw ow ha er eh well",
    "call": "hey hi hello bye goodbye please sorry thanks thank excuse welcome wait stop look listen come hold stay",
    "think": "know think mean guess see believe understand tell say said told want need like love feel hope remember "
    "thought",
    "the": "the a an some any all every each no one two three another other both",
    "in": "in on at to for with from of about by up out off over into after before around through down back away",
    "just": "just really very too now still again already always maybe actually even only also ever yet more much "
    "anyway probably pretty kind",
    "thing": "something anything everything someone anyone everyone everybody anybody somebody thing guy guys man god "
    "way time good great nice bad get go got going make take let give",
}
_CHINESE_CLASSES = {
    "i": "我 俺 咱",
    "you": "你 您",
    "he": "他 她 它",
    "it": "这 那 此",
    "wh": "什 谁 哪 怎 为 几 何",
    "yes": "是 对 好 行 嗯 当 没 可",
    "no": "不 别 未 无",
    "link": "但 因 所 如 而 和 或 就 还 又 也 然 只 且 虽 除 于 以",
    "oh": "啊 哦 噢 哇 呃 嘿 嗨 哈 喂 唉 天 呀",
    "particle": "吗 呢 吧 了 的 么 嘛 啦 着 过 得 地",
    "call": "谢 抱 请 等 听 看 来 快 走 再",
    "think": "想 知 觉 说 要 能 会 该 应 希 告 认 以 爱 喜",
    "just": "很 真 太 都 才 已 现 在 有 把 被 让 给 跟 从 到 去 做 一 个 上 下 里 人",
}


def _index(classes: dict[str, str]) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """The number of each word, from 2 (0 is no word, 1 any other word); the same for its class; and the class names."""
    numbers: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for kind, names in enumerate(classes.values(), start=2):
        for word in names.split():
            numbers.setdefault(word, len(numbers) + 2)
            kinds.setdefault(word, kind)
    return numbers, kinds, list(classes)


NUMBERS: dict[str, dict[str, int]] = {}
KINDS: dict[str, dict[str, int]] = {}
CLASSES: dict[str, list[str]] = {}
for _language, _classes in (("en", _ENGLISH_CLASSES), ("zh", _CHINESE_CLASSES)):
    NUMBERS[_language], KINDS[_language], CLASSES[_language] = _index(_classes)
PRONOUNS = ("i", "you", "he", "they", "we", "it")
"""The classes whose set in a sentence is a feature."""
