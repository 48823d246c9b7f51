"""Messages in other languages: explicit signs are answered in them, and nothing a model cannot read reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from test_wrapper import Echo, conversation

from listenwell.commands.explain import why
from listenwell.data import sources
from listenwell.data.dialogue import Dialogue, Turn
from listenwell.systems.conversation import Exchange
from listenwell.systems.reply import Reply
from listenwell.systems.safety import SafetyWrapper, load_resources
from listenwell.systems.safety.foreign_signs import KINDS, detect_foreign
from listenwell.systems.safety.language_id import data, language_of, phrase_data
from listenwell.systems.safety.other_languages import language_notice
from test_system import made_bot

CASES = yaml.safe_load((Path(__file__).parent / "other_languages.yaml").read_text(encoding="utf-8"))
LANGUAGES = sorted(CASES)
NOT_FOREIGN = [
    "hola amigo just kidding", "c'est la vie", "lol", "ok", "hmm", "gracias, that helped", "k", "thx", "idk", "ugh",
    "omg lmao", "Hasta la vista baby", "merci beaucoup for that", "yo bro wassup", "dunno tbh", "nvm", "José", "Ciao!",
    "My name is Maria de la Cruz", "Juan Carlos Fernandez", "I live in Los Angeles", "my main man", "la la la",
    "i love jalapeño and crème brûlée", "she said je ne sais quoi", "no me gusta lol jk", "Dang it", "soooo tired",
    "wanna die laughing", "im sad af rn", "whyyyyy", "teh cat siad hi", "5", "at 10:30", "Die Hard is on tv", "brb",
    "I said 'ich liebe dich' to her", "déjà vu", "I ate pho and bánh mì", "¿what?", "my cat's name is Mein Schatz",
    "naïve me", "Nguyễn Văn An is my friend", "hi", "I love 北京", "the kanji 生 means life", "Moscow (Москва) is cold",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LISTENWELL_CARE", raising=False)
    monkeypatch.delenv("LISTENWELL_REGION", raising=False)


def direct(language: str) -> Iterator[tuple[str, str]]:
    for case in CASES[language]["direct"]:
        yield next(iter(case.items())) if isinstance(case, dict) else ("self-harm", case)


@pytest.mark.parametrize("language", LANGUAGES)
def test_outright_signs_are_answered_in_their_language(language: str):
    assert len(CASES[language]["direct"]) >= 12
    for kind, text in direct(language):
        echo = Echo()
        reply = SafetyWrapper(echo).reply(text)
        assert reply.reasons == {"care": f"{kind}, direct"}, text
        assert reply.text.startswith(phrase_data()[language]["replies"][kind].split("{")[0]), text
        assert "findahelpline.com" in reply.text
        assert echo.seen == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinary_talk_is_told_what_is_understood_and_raises_no_alarm(language: str):
    assert len(CASES[language]["harmless"]) >= 12
    replies = {text: SafetyWrapper(Echo()).reply(text) for text in CASES[language]["harmless"]}
    assert {text: str(sign) for text in replies if (sign := detect_foreign(text))} == {}
    told = [text for text, reply in replies.items() if reply.reasons == {"care": f"language: {language}"}]
    assert len(told) >= 0.8 * len(replies), set(replies) - set(told)
    for text, reply in replies.items():
        assert reply.reasons == {} or reply.reasons["care"].startswith("language: "), text


@pytest.mark.parametrize("text", NOT_FOREIGN)
def test_english_is_never_called_another_language(text: str):
    assert language_of(text) == "en"


@pytest.mark.data
def test_ordinary_dialogues_are_english():
    try:
        folder = sources.find_data("empathetic-dialogues")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    dialogues = sources.read("empathetic-dialogues", folder, split="valid")
    turns = [turn.text for dialogue in dialogues for turn in dialogue.turns if turn.speaker == "speaker"]
    wrong = [text for text in turns if language_of(text) != "en" or detect_foreign(text) is not None]
    assert len(wrong) <= 0.001 * len(turns), wrong


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Σήμερα είμαι πολύ λυπημένος", "el"), ("Сьогодні мені дуже сумно і самотньо", "uk"),
        ("אני מאוד עצוב היום", "other"), ("วันนี้ฉันเศร้ามาก", "other"), ("امروز خیلی غمگینم", "fa"),
        ("Ik ben vandaag erg verdrietig", "nl"), ("Bugün çok üzgünüm ve yalnız", "tr"),
        ("Jestem dziś bardzo smutna", "pl"), ("Täna on mul väga kõrini kõigest", "other"),
        ("今天心情很差", "zh"), ("我今天和boss吵架了", "zh"), ("嗯", "zh"),
    ],
)  # fmt: skip
def test_languages_without_phrases_are_told_apart_from_english(text: str, language: str):
    assert language_of(text) == language
    echo = Echo()
    reply = SafetyWrapper(echo).reply(text)
    assert reply.reasons == {"care": f"language: {language}"}
    assert (echo.seen, "findahelpline.com" in reply.text) == ([], True)


@pytest.mark.parametrize(
    "text", ["😭😭😭", "...", "?", ":(", "<3", ":'(", "¯\\_(ツ)_/¯", "ಠ_ಠ", "ㅠㅠ", "👍🏽", "💔 💔", "!!!"]
)
def test_emoji_and_signs_alone_are_asked_for_words(text: str):
    echo = Echo()
    reply = SafetyWrapper(echo).reply(text)
    assert reply.reasons == {"care": "language: no words"}
    assert ("words" in reply.text, echo.seen) == (True, [])


def test_a_system_gets_the_languages_that_it_speaks():
    echo = Echo()
    assert SafetyWrapper(echo).reply("今天心情很差").text == data()["notices"]["zh"]
    echo.languages = ("en", "zh", "de")
    assert SafetyWrapper(echo).reply("今天心情很差").text == "今天心情很差"
    assert SafetyWrapper(echo).reply("Mir geht es heute nicht gut").reasons == {}
    assert SafetyWrapper(echo).reply(["今天心情很差", "怎么了？", "😭"]).text == data()["notices"]["no words zh"]


def test_a_bot_speaks_the_language_that_it_learned_from():
    bot = made_bot()
    assert bot.languages == ("en",)
    bot.checkpoint.meta["languages"] = ["zh"]
    assert bot.languages == ("zh",)
    assert language_notice([Turn("speaker", "今天心情很差")], bot.languages) is None


def test_a_notice_can_name_a_system_that_does_speak_the_language():
    notice = language_notice([Turn("speaker", "今天心情很差")], ("en",), speaker="some-system")
    assert notice is not None
    assert "listenwell chat some-system" in notice.text


def test_short_answers_to_care_in_another_language_stay_in_care():
    texts = ["Ich will nicht mehr leben", "ja", "heute Nacht", "Ich weiß nicht, was ich sonst noch machen soll"]
    first, *later = conversation(SafetyWrapper(Echo()), *texts)
    again = phrase_data()["de"]["replies"]["again"].split("{")[0]
    for reply in later:
        assert reply.reasons == {"care": "self-harm, direct"}
        assert reply.text.startswith(again)
    assert len(later[0].text) < len(first.text)


def test_a_long_english_message_leaves_care_in_another_language():
    echo = Echo()
    text = "sorry, I was only quoting a song that I had to learn for school"
    conversation(SafetyWrapper(echo), "je veux mourir", text)
    assert echo.seen == [text]


def test_care_in_another_language_does_not_answer_for_a_third():
    german = "Ich will nicht mehr leben"
    assert conversation(SafetyWrapper(Echo()), german, "今天心情很差")[1].reasons == {"care": "language: zh"}
    assert "I'm glad you told me" in conversation(SafetyWrapper(Echo()), german, "I want to die")[1].text
    assert "程序" in conversation(SafetyWrapper(Echo()), german, "我不想活了")[1].text


def test_emoji_after_an_english_sign_stay_in_care():
    assert conversation(SafetyWrapper(Echo()), "I want to kill myself", "😭")[1].reasons["care"].startswith("self-harm")


def test_every_way_to_ask_is_covered():
    echo = Echo()
    wrapped = SafetyWrapper(echo)
    assert [reply.reasons["care"] for reply in wrapped.replies(["je veux mourir", "今天心情很差"])] == [
        "self-harm, direct",
        "language: zh",
    ]
    assert "findahelpline.com" in [*wrapped.stream("je veux mourir")][-1]
    assert "care" in wrapped.reply(Dialogue("d", (Turn("speaker", "死にたい"),))).reasons
    assert echo.seen == []


def test_numbers_are_named_only_where_somebody_checked_them():
    for language, entry in phrase_data().items():
        emergency = entry["replies"]["emergency"]
        assert ("112" in emergency) == (language in ("de", "fr", "es", "pt", "it")), language
        assert not any(c.isdigit() for kind in (*KINDS, "again") for c in entry["replies"][kind]), language
    chosen = SafetyWrapper(Echo(), load_resources(region="us")).reply("quiero morir").text
    assert "al 911" in chosen
    assert "112" not in chosen


def test_each_language_has_all_its_texts():
    for language, entry in phrase_data().items():
        texts = [entry["notice"], *(entry["replies"][kind] for kind in (*KINDS, "again"))]
        assert len(set(texts)) == 5
        assert all("findahelpline.com" in text for text in texts), language
        assert all("{emergency}" in text for text in texts[1:]), language


def test_why_says_that_the_language_is_not_read():
    (line,) = why(Exchange("Hallo", Reply("…", reasons={"care": "language: de"})), ["Hallo"])
    assert str(line).startswith("it cannot read this (language: de)")
