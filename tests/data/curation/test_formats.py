"""Every subtitle format, both well-formed and as found in practice."""

from __future__ import annotations

import contextlib
import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.data.curation.bilingual import split_by_script
from listenwell.data.curation.cues import Cue, SubtitleError
from listenwell.data.curation.reading import MAX_BYTES, read_cues
from listenwell.data.curation.turns import split_dashes

SRT = """1
00:00:01,000 --> 00:00:02,500
Good morning.

2
00:00:03,000 --> 00:00:04,000
<i>Did you sleep?</i>
Did you?

"""

VTT = """WEBVTT - a title

NOTE nobody says this

STYLE
::cue { color: lime }

first
00:01.000 --> 00:02.500 align:start position:0%
<v Ann>Good <c.loud>morning</c> &amp; welcome.

00:00:03.000 --> 00:00:04.000
<v Ann>Did you <00:00:03.500>sleep?
<v Bob>Like a stone.
"""

ASS = r"""[Script Info]
Title: made for a test

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\i1}And you,{\i0} sir?\NDid you sleep?
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,Good morning, all.
Dialogue: 0,0:00:00.00,0:00:09.00,Default,,0,0,0,,{\pos(10,20)}EPISODE ONE
Dialogue: 0,0:00:00.00,0:00:09.00,Default,,0,0,0,,{\p1}m 0 0 l 100 0{\p0}
Comment: 0,0:00:00.00,0:00:09.00,Default,,0,0,0,,not shown
"""

OPUS = """<?xml version="1.0" encoding="utf-8"?>
<document id="1">
  <s id="1"><time id="T1S" value="00:00:01,000" /><w id="1.1">I</w> <w id="1.2">do</w><w id="1.3">n't</w>
    <w id="1.4">know</w> <time id="T1E" value="00:00:02,000" /></s>
  <s id="2"><time id="T2S" value="00:00:03,000" /><w id="2.1">Where</w> <w id="2.2">?</w></s>
  <s id="3"><w id="3.1">-</w> <w id="3.2">Here</w> <w id="3.3">.</w><time id="T2E" value="00:00:04,000" /></s>
  <s id="4"><w id="4.1">Nobody</w> <w id="4.2">timed</w> <w id="4.3">this</w> <w id="4.4">.</w></s>
  <meta><subtitle><language>English</language></subtitle></meta>
</document>
"""


def texts(data: str | bytes, name: str = "made.srt") -> list[str]:
    raw = data.encode() if isinstance(data, str) else data
    return [cue.text for cue in read_cues(name, raw).cues]


def times(data: str) -> list[tuple[float | None, float | None]]:
    return [(cue.start, cue.end) for cue in read_cues("made.srt", data.encode()).cues]


def test_srt_gives_numbered_cues_without_markup() -> None:
    subtitle = read_cues("made.srt", SRT.encode())
    assert (subtitle.format, subtitle.encoding, subtitle.language) == ("srt", "utf-8", "en")
    assert subtitle.cues == [
        Cue("made.srt", 1, 1.0, 2.5, "Good morning."),
        Cue("made.srt", 2, 3.0, 4.0, "Did you sleep?\nDid you?"),
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_srt_line_ends_do_not_matter(end: str) -> None:
    assert texts(SRT.replace("\n", end)) == ["Good morning.", "Did you sleep?\nDid you?"]


def test_srt_needs_no_numbers_and_no_empty_lines() -> None:
    assert texts("00:00:01,0 --> 00:00:02,0\nOne.\n2\n00:00:03.0-->00:00:04.0 X1:10 X2:20\nTwo.") == ["One.", "Two."]


def test_srt_a_number_that_somebody_says_stays() -> None:
    assert texts("1\n00:00:01,000 --> 00:00:02,000\nHow many?\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n7\n") == [
        "How many?\n42",
        "7",
    ]


def test_srt_fractions_have_any_number_of_digits() -> None:
    assert times("1\n00:00:01,5 --> 00:00:02,25\nHi.\n")[0] == (1.5, 2.25)


def test_srt_hundredths_written_as_thousandths() -> None:
    blocks = [f"{n}\n00:00:{n:02d},050 --> 00:00:{n:02d},099\nLine {n}.\n" for n in range(1, 13)]
    assert times("\n".join(blocks))[0] == (1.5, 1.99)
    blocks[3] = blocks[3].replace(",099", ",999")
    assert times("\n".join(blocks))[0] == (1.05, 1.099)


def test_srt_a_damaged_time_is_none_and_still_begins_a_cue() -> None:
    damaged = SRT.replace("00:00:03,000 -->", "00:0O:o3 -->")
    assert texts(damaged) == ["Good morning.", "Did you sleep?\nDid you?"]
    assert times(damaged)[1] == (None, None)


def test_an_end_before_its_start_is_unknown() -> None:
    assert times("1\n00:00:05,000 --> 00:00:01,000\nHi.\n") == [(5.0, None)]


def test_cues_come_in_the_order_of_time_with_their_place_in_the_file() -> None:
    swapped = "1\n00:00:09,000 --> 00:00:10,000\nLast.\n\n2\n00:00:01,000 --> 00:00:02,000\nFirst.\n"
    assert [(cue.number, cue.text) for cue in read_cues("made.srt", swapped.encode()).cues] == [
        (2, "First."),
        (1, "Last."),
    ]


def test_empty_cues_are_dropped_with_a_reason() -> None:
    subtitle = read_cues("made.srt", (SRT + "3\n00:00:05,000 --> 00:00:06,000\n<i> </i>\n").encode())
    assert len(subtitle.cues) == 2
    assert [(each.reason, each.cue.number) for each in subtitle.dropped] == [("no text", 3)]


def test_vtt_gives_cues_with_their_voices_and_skips_notes_and_styles() -> None:
    subtitle = read_cues("made.vtt", VTT.encode())
    assert subtitle.format == "vtt"
    assert [(cue.start, cue.speaker, cue.text) for cue in subtitle.cues] == [
        (1.0, "Ann", "Good morning & welcome."),
        (3.0, "Ann", "Did you sleep?"),
        (3.0, "Bob", "Like a stone."),
    ]


def test_ass_gives_speech_and_drops_titles_and_drawings() -> None:
    subtitle = read_cues("made.ass", ASS.encode("utf-16"))
    assert (subtitle.format, subtitle.encoding) == ("ass", "utf-16-le")
    assert [cue.text for cue in subtitle.cues] == ["Good morning, all.", "And you, sir?\nDid you sleep?"]
    assert [each.reason for each in subtitle.dropped] == ["positioned text", "drawing"]


def test_ass_that_positions_all_its_text_is_speech() -> None:
    placed = ASS.replace(",,0,0,0,,", r",,0,0,0,,{\pos(1,2)}")
    assert len(read_cues("made.ass", placed.encode()).cues) == 3


def test_opus_restores_the_cues_and_joins_the_words() -> None:
    subtitle = read_cues("made.xml", OPUS.encode())
    assert subtitle.format == "opus"
    assert [(cue.start, cue.end, cue.text) for cue in subtitle.cues] == [
        (1.0, 2.0, "I don't know"),
        (3.0, 4.0, "Where? - Here."),
        (None, None, "Nobody timed this."),
    ]


def test_opus_without_words_and_packed() -> None:
    start, end = b'<time id="T1S" value="00:00:01,000"/>', b'<time id="T1E" value="00:00:02,000"/>'
    plain = b'<document><s id="1">' + start + b"Hello there." + end + b"</s></document>"
    assert texts(gzip.compress(plain), "1.xml.gz") == ["Hello there."]


BOMB = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><document><s>&b;</s></document>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><document><s>&x;</s></document>'


@pytest.mark.parametrize("data", [BOMB, OUTSIDE, "<?xml version='1.0' encoding='none'?><document/>", "<document><s>"])
def test_opus_refuses_entities_and_broken_xml(data: str) -> None:
    with pytest.raises(SubtitleError, match=r"made\.xml: not a readable OPUS file"):
        read_cues("made.xml", data.encode())


def test_a_gzip_bomb_is_not_unpacked() -> None:
    with pytest.raises(SubtitleError, match="too large"):
        read_cues("bomb.gz", gzip.compress(bytes(MAX_BYTES + 1), 9))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"\xef\xbb\xbf\n \n", "no subtitles"),
        (b"Dear diary, nothing happened.", "no subtitles"),
        (bytes(range(256)) * 40, "cannot be decoded"),
        (b"1\n00:00:01,000 --> 00:00:02,000\n\n", "no cues"),
        (gzip.compress(SRT.encode(), mtime=0)[:40], "damaged gzip"),
    ],
)
def test_what_is_no_subtitle_is_said_with_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(SubtitleError, match=reason) as caught:
        read_cues("some/file.srt", data)
    assert caught.value.file == "some/file.srt"


def test_a_missing_file_is_a_subtitle_error(tmp_path: Path) -> None:
    with pytest.raises(SubtitleError, match="cannot be read"):
        read_cues(tmp_path / "none.srt")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_cues_or_a_subtitle_error(data: bytes) -> None:
    with contextlib.suppress(SubtitleError):
        assert read_cues("any", data).cues


PIECES = ["1", "00:00:01,000 --> 00:00:02,000", "-->", "Hi.", "你好", "", "- A. - B.", "<i>", "{\\an8}", "WEBVTT"]
PIECES += [
    "[Events]",
    "Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,Hi",
    "Format: Text",
    "<v A>x",
    "NOTE",
    "0:99:99,9 --> 1",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(["utf-8", "gb18030", "utf-16"]))
def test_lines_in_any_order_are_cues_or_a_subtitle_error(lines: list[str], codec: str) -> None:
    try:
        subtitle = read_cues("any", "\n".join(lines).encode(codec))
    except SubtitleError:
        return
    numbers = [cue.number for cue in subtitle.cues] + [each.cue.number for each in subtitle.dropped]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert all(cue.text.strip() for cue in subtitle.cues)


@pytest.mark.data
def test_every_real_file_is_read() -> None:
    root = Path(os.environ.get("LISTENWELL_DATA", "")) / "subtitles"
    if not root.is_dir():
        pytest.skip("LISTENWELL_DATA has no subtitles")
    files = [path for path in sorted(root.glob("*/*")) if path.suffix in (".srt", ".ass")]
    kinds: dict[tuple[str, str], int] = {}
    for path in files[::5]:
        subtitle = read_cues(path)
        kinds[subtitle.format, subtitle.encoding] = kinds.get((subtitle.format, subtitle.encoding), 0) + 1
        assert len(subtitle.cues) > 20
        assert "zh" in subtitle.language
    assert {kind for kind, _ in kinds} == {"srt", "ass"}
    assert {encoding for _, encoding in kinds} >= {"utf-8", "gb18030", "utf-16-le"}
    assert len(read_cues(root / "elephantsdream.en.vtt").cues) == 78


@pytest.mark.parametrize("filling", ["\n", ".", "?!", "- ", "Mr. ", '"', "{\\", "<i", "1\n", "&", "a. ", "… "])
def test_a_huge_cue_of_one_thing_takes_no_longer_than_its_size(filling: str) -> None:
    """A pattern that restarts at every position would take hours here and hang the whole test run."""
    data = (
        "1\n00:00:01,000 --> 00:00:02,000\nHello my friend.\n\n2\n00:00:03,000 --> 00:00:04,000\n" + filling * 100_000
    )
    for cues in split_by_script(read_cues("made.srt", data.encode())).values():
        assert split_dashes(cues)
