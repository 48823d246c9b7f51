"""Text round-trips through every encoding that subtitles are saved in."""

from __future__ import annotations

import codecs

import pytest

from listenwell.data.curation.cues import SubtitleError
from listenwell.data.curation.encodings import decode

CHINESE = "1\n00:00:01,000 --> 00:00:02,000\n我不知道你在说什么，但是我们现在要走了。\n你会来吗？\n" * 8
TRADITIONAL = "1\n00:00:01,000 --> 00:00:02,000\n我不知道你在說什麼，但是我們現在要走了。\n你會來嗎？\n" * 8
JAPANESE = "1\n00:00:01,000 --> 00:00:02,000\n何を言っているのか分かりません。もう行きましょう。\n" * 8
KOREAN = "1\n00:00:01,000 --> 00:00:02,000\n무슨 말을 하는지 모르겠어요. 이제 가야 해요.\n" * 8
FRENCH = "1\n00:00:01,000 --> 00:00:02,000\nJe ne sais pas où tu étais, mais c'était très loin d'ici, à côté.\n" * 8
RUSSIAN = "1\n00:00:01,000 --> 00:00:02,000\nЯ не знаю, о чём ты говоришь, но нам пора идти.\n" * 8


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "gbk"]
)
def test_chinese_in_every_encoding(codec: str) -> None:
    assert decode(CHINESE.encode(codec))[0] == CHINESE


@pytest.mark.parametrize(
    ("text", "codec"),
    [(TRADITIONAL, "big5"), (JAPANESE, "cp932"), (KOREAN, "cp949"), (FRENCH, "cp1252"), (RUSSIAN, "cp1251")],
)
def test_legacy_encodings_are_told_apart(text: str, codec: str) -> None:
    assert decode(text.encode(codec))[0] == text


def test_mostly_english_with_a_little_chinese() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nWhere have you been?\n" * 50 + "我们走吧，不要说了\n"
    assert decode(text.encode("gb18030")) == (text, "gb18030")


def test_a_few_broken_bytes_do_not_spoil_a_file() -> None:
    data = CHINESE.encode("utf-8")
    text, codec = decode(data[:-1] + b"\xff" + data[-1:])
    assert codec == "utf-8"
    assert text.count("\ufffd") == 1
    assert decode(CHINESE.encode("gb18030")[:-3] + b"\xff\xff\n")[1] == "gb18030"


@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\x00\x00\x00"])
def test_nothing_is_an_empty_file(data: bytes) -> None:
    with pytest.raises(SubtitleError, match="empty file"):
        decode(data, "a.srt")


def test_a_picture_is_no_text() -> None:
    with pytest.raises(SubtitleError, match=r"a\.png: cannot be decoded"):
        decode(b"\x89PNG\r\n\x1a\n" + bytes([7, 1, 3, 200, 9, 131, 2, 255]) * 100, "a.png")


def test_every_byte_order_mark_is_removed() -> None:
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ):
        assert decode(mark + "Hi.".encode(codec)) == ("Hi.", codec)
