"""What the detector finds and what it misses: rates on written cases, and one case for each kind of reading."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from listenwell.data import sources
from listenwell.systems import safety
from listenwell.systems.safety import detect
from listenwell.systems.safety.classifier import backbone
from listenwell.systems.safety.detector import rules
from listenwell.systems.safety.normalize import Chinese, English

ReadAtOnce = Callable[[Iterable[str]], AbstractContextManager[None]]

CASES = Path(safety.__file__).parent / "cases"
"""What the rules were adjusted on and the classifier was trained on."""
HELD_OUT = [Path(__file__).parent / name for name in ("held_out.jsonl", "held_out_second.jsonl")]
"""What neither has seen, each written apart by somebody who knew nothing of either."""


@pytest.mark.parametrize("paths", [[CASES / "development.jsonl"], HELD_OUT], ids=["development", "held-out"])
def test_signs_are_heard_and_ordinary_talk_is_not(
    paths: list[Path], read_at_once: ReadAtOnce, capsys: pytest.CaptureFixture[str]
):
    """Over all cases together; the rates of each language are printed."""
    if paths == HELD_OUT and backbone() is None:
        pytest.skip("no package carries MiniLM here, and the English rules alone do not reach these rates")
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    cases = [json.loads(line) for line in lines]
    all_of = Counter((case["sign"], language) for case in cases for language in ("all", case["language"]))
    with read_at_once(case["text"] for case in cases):
        heard = Counter(
            (case["sign"], language)
            for case in cases
            if detect(case["text"]) is not None
            for language in ("all", case["language"])
        )
    with capsys.disabled():
        print(f"\n{', '.join(path.stem for path in paths)}:")
        for (sign, language), count in sorted(all_of.items(), key=str):
            share = heard[sign, language] / count
            print(f"  {sign or 'none':<9} {language:<4} {heard[sign, language]:>4} of {count:<4} {100 * share:5.1f} %")
    assert heard["direct", "all"] >= 0.95 * all_of["direct", "all"]
    assert heard["indirect", "all"] >= 0.80 * all_of["indirect", "all"]
    assert heard[None, "all"] <= 0.02 * all_of[None, "all"]


def test_there_are_enough_cases_in_both_languages():
    lines = (CASES / "development.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len({case["text"] for case in cases}) == len(cases)
    for language in ("en", "zh"):
        ours = [case["sign"] for case in cases if case["language"] == language]
        assert min(ours.count("direct"), ours.count("indirect")) >= 50
        assert ours.count(None) >= 110


@pytest.mark.data
def test_ordinary_dialogues_raise_few_alarms(read_at_once: ReadAtOnce):
    """Every tenth speaker turn of EmpatheticDialogues' test split; some of the alarms are true."""
    try:
        folder = sources.find_data("empathetic-dialogues")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    turns = [
        turn.text
        for dialogue in sources.read("empathetic-dialogues", folder, split="test")
        for turn in dialogue.turns
        if turn.speaker == "speaker"
    ][::10]
    with read_at_once(turns):
        alarms = [text for text in turns if detect(text) is not None]
    assert len(alarms) < 0.005 * len(turns), alarms


@pytest.mark.parametrize(
    ("text", "kind", "directness", "language"),
    [
        ("I am going to kill myself", "self-harm", "direct", "en"),
        ("They would all be better off without me", "self-harm", "indirect", "en"),
        ("My husband is hitting me", "danger", "direct", "en"),
        ("A man grabbed me and tried to pull me into his van", "danger", "direct", "en"),
        ("I don't feel safe at home with my boyfriend", "danger", "indirect", "en"),
        ("I want to stab my boss", "harm-to-others", "direct", "en"),
        ("我不想活了", "self-harm", "direct", "zh"),
        ("没有我你们会更好", "self-harm", "indirect", "zh"),
        ("老公又打我了", "danger", "direct", "zh"),
        ("我想杀了他", "harm-to-others", "direct", "zh"),
    ],
)
def test_a_sign_says_what_it_is_and_why(text: str, kind: str, directness: str, language: str):
    sign = detect(text)
    assert sign is not None
    assert (sign.kind, sign.directness, sign.language) == (kind, directness, language)
    assert sign.words
    assert sign.why
    assert str(sign) == f"{kind}, {directness}"


@pytest.mark.parametrize(
    "text",
    [
        "I WANT TO DIE",
        "i want to dieeeee",
        "i wanna d1e",
        "i want to k*ll myself",
        "thinking about su1cide",
        "s u i c i d e is all i think of",
        "im suicdal",
        "I don’t want to live anymore",
        "Ｉ ｗａｎｔ ｔｏ ｄｉｅ",
        "kms tonight",
        "我想自殺",
        "想 死",
        "我想紫砂",
        "今晚自sha",
    ],
)
def test_disguises_and_slips_are_read(text: str):
    assert detect(text) is not None


@pytest.mark.parametrize("text", ["", "   ", "!!!", "🙂", "5", "\u200b", "hm", "好"])
def test_next_to_nothing_is_no_sign(text: str):
    assert detect(text) is None


def test_an_idiom_does_not_hide_what_stands_beside_it():
    assert detect("This traffic is killing me") is None
    assert detect("This traffic is killing me, and I want to kill myself") is not None


def test_a_message_in_both_languages_is_read_in_both():
    assert detect("我今天很好, but I want to kill myself") is not None
    assert detect("I am fine. 其实我不想活了") is not None


def test_the_gravest_sign_of_a_message_is_told():
    sign = detect("They would be better off without me. I am going to kill myself.")
    assert sign is not None
    assert sign.directness == "direct"


def test_a_past_that_is_over_is_no_sign_and_one_that_is_back_is():
    assert detect("Ten years ago I tried to kill myself, but I got help and I am happy now") is None
    assert detect("Ten years ago I tried to kill myself, and now the thoughts are back") is not None


def test_english_is_written_one_way():
    normal = rules("en").normal
    assert isinstance(normal, English)
    assert normal("I'm REALLY gonna   d1e!! lol") == "i am going to die . haha"
    assert normal("I can't, I won't; they'd better not") == "i can not , i will not . they would better not"
    assert normal("nobody's self-harming any more") == "no one is self harming anymore"


def test_chinese_is_written_one_way():
    normal = rules("zh").normal
    assert isinstance(normal, Chinese)
    assert normal("我真的想自殺！！！ 再見[泪]") == "我想自杀。再见，"


def test_every_guard_names_signs_that_are_there():
    import yaml

    folder = Path(safety.__file__).parent
    for name in ("english.yaml", "chinese.yaml"):
        data = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        signs = {record["sign"] for record in data["signs"]}
        kinds = {record["is"].split(", ")[0] for record in data["signs"]}
        known = signs | kinds | {record["is"].replace(",", "") for record in data["signs"]} | {"hints"}
        assert all(record["why"] for record in data["signs"] + data["guards"])
        assert {of for record in data["guards"] for of in record.get("of", ())} <= known


@pytest.mark.skipif(backbone() is None, reason="no package carries MiniLM here")
@pytest.mark.parametrize(
    "text",
    [
        "kms",
        "unalive myself lol",
        "time to ctb",
        "sh again last night, relapsed after 3 months",
        "gonna yeet myself off a bridge",
        "I keep looking down from the car park roof",
        "I keep thinking about getting in the bath with the toaster",
        "Dad left the rifle cabinet unlocked and I can't stop thinking about it",
        "I've been stockpiling my sleeping pills",
        "我想自鲨",
        "想重开了，人生这号废了",
        "上天台吹吹风算了，可能就不下来了",
        "医生开的药我没吃，都存着",
    ],
)
def test_the_words_of_forums_and_of_the_young_are_known(text: str):
    assert detect(text) is not None


@pytest.mark.skipif(backbone() is None, reason="no package carries MiniLM here")
@pytest.mark.parametrize(
    "text",
    [
        "I'd rather be dead than be seen in those shoes",
        "I ran 5 kms this morning",
        "game over, he beat me again",
        "We bought helium for my daughter's birthday",
        "My grandfather left me his hunting rifle",
        "I keep looking at her bed. The house is so quiet.",
        "宁愿死也不穿那双鞋出门",
        "买了炭准备周末烧烤",
        "这局废了，重开吧",
    ],
)
def test_jokes_tools_and_grief_are_left_alone(text: str):
    assert detect(text) is None
