"""Bilingual files are split by language, and speaker marks in one language apply to both."""

from __future__ import annotations

from listenwell.data.curation.bilingual import split_by_script
from listenwell.data.curation.cues import Cue, Subtitle
from listenwell.data.curation.dashes import carry_dashes, spoken_pieces
from listenwell.data.curation.reading import read_cues

ENGLISH = ["Where have you been all day?", "I was at the office, you know that.", "That is not what he told me."]


def subtitle(*texts: str) -> Subtitle:
    blocks = [f"{n}\n00:00:{n:02d},000 --> 00:00:{n:02d},900\n{text}\n" for n, text in enumerate(texts, start=1)]
    return read_cues("made.srt", "\n".join(blocks).encode())


def sides(*texts: str) -> dict[str, list[tuple[int, str]]]:
    found = split_by_script(subtitle(*texts))
    return {language: [(cue.number, cue.text) for cue in cues] for language, cues in found.items()}


def test_lines_of_two_languages_come_apart_in_either_order() -> None:
    assert sides(f"{ENGLISH[0]}\n你一整天在哪里", f"我在办公室\n{ENGLISH[1]}") == {
        "en": [(1, ENGLISH[0]), (2, ENGLISH[1])],
        "zh": [(1, "你一整天在哪里"), (2, "我在办公室")],
    }
    assert subtitle(f"{ENGLISH[0]}\n你一整天在哪里").language == "en+zh"


def test_a_latin_name_leaves_a_chinese_line_chinese() -> None:
    assert sides(*ENGLISH, "我是George Minkowski")["zh"] == [(4, "我是George Minkowski")]


def test_two_languages_on_one_line_are_cut() -> None:
    assert sides(*ENGLISH, "Where are you now? 你现在在哪里")["zh"] == [(4, "你现在在哪里")]
    assert sides(*ENGLISH, "你现在在哪里 Where are you now?")["en"][-1] == (4, "Where are you now?")


def test_a_name_alone_in_a_chinese_file_is_chinese() -> None:
    assert sides("你一整天在哪里", "我在办公室", "他不是这么说的", "James?", "我们走吧", "好的")["zh"][3] == (
        4,
        "James?",
    )


def test_a_line_without_letters_goes_with_its_neighbour() -> None:
    assert sides(*ENGLISH, "...\nWhat did you say to him?")["en"][-1] == (4, "...\nWhat did you say to him?")


def test_other_languages_are_not_called_english() -> None:
    assert set(sides("Je ne sais pas où tu étais hier soir.", "C'était très loin d'ici, mon ami.")) == {"und"}
    assert set(sides("何を言っているのか分かりません。")) == {"ja"}
    assert set(sides("무슨 말을 하는지 모르겠어요.")) == {"ko"}
    assert set(sides("Я не знаю, о чём ты говоришь.")) == {"und"}


def test_dashes_of_the_translation_are_carried_over() -> None:
    assert carry_dashes("Hey, Ann. It's Bob. Bob?", "-Ann吗 我是Bob -Bob?") == "- Hey, Ann. It's Bob.\n- Bob?"
    pieces = spoken_pieces(carry_dashes("Yes. No.", "- 是 - 不是"))
    assert [(text, dash) for text, dash, _ in pieces] == [("Yes.", True), ("No.", True)]


def test_dashes_of_its_own_and_single_sentences_stay_as_they_are() -> None:
    assert carry_dashes("- Yes. - No.", "- 是 - 不是 - 什么") == "- Yes. - No."
    assert carry_dashes("Yes", "- 是 - 不是") == "Yes"
    assert carry_dashes("Yes. No.", "是 不是") == "Yes. No."


def test_numbers_and_times_stay_with_both_languages() -> None:
    found = split_by_script(Subtitle("f", "srt", "utf-8", "en+zh", [Cue("f", 7, 1.0, None, f"{ENGLISH[0]}\n你在哪里")]))
    assert {(cue.number, cue.start, cue.end) for cues in found.values() for cue in cues} == {(7, 1.0, None)}
