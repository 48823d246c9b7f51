"""Each cleaning step does what its name says, and only to its targets."""

import pytest

from listenwell.data.curation import cleaning, steps
from listenwell.data.curation.cleaning import cleaning_for
from listenwell.data.curation.counts import Counts
from listenwell.data.curation.cues import CueTurn


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        ("markup", "<i>Hi</i> {\\an8}there", " Hi   there"),
        ("markup", "2 < 3 and 5 > 4", "2 < 3 and 5 > 4"),
        ("sound descriptions", "[door slams] Who is it?", "  Who is it?"),
        ("sound descriptions", "(SIGHS) I know.", "  I know."),
        ("sound descriptions", "He came (as he always does) late.", "He came (as he always does) late."),
        ("songs", "♪ I will survive ♪", " "),
        ("songs", "We're #1!", "We're #1!"),
        ("speaker names", "ROSS: Hi.", "Hi."),
        ("speaker names", "OLD MAN #2: Go away. JOEY: No.", "Go away. No."),
        ("speaker names", "It is 10:30 now: hurry.", "It is 10:30 now: hurry."),
        ("speaker names", "Remember: be kind.", "Remember: be kind."),
        ("typographic marks", "“Don’t…” — no", '"Don\'t..." - no'),
        ("repeated marks and letters", "Nooooo!!! Why??", "Nooo! Why?"),
        ("repeated marks and letters", "Well....... yes", "Well... yes"),
        ("repeated marks and letters", "In 10000 years", "In 10000 years"),
        ("spaces and dashes", "- Oh,gosh !  Really ?", "Oh, gosh! Really?"),
        ("spaces and dashes", "It cost 1,000 dollars", "It cost 1,000 dollars"),
        ("spaces and dashes", "...and then?", "and then?"),
    ],
)
def test_a_text_step_changes_what_it_is_for(step: str, text: str, expected: str):
    assert steps.TEXT_STEPS[step](text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Subtitles by Somebody", True),
        ("Synced and corrected by somebody", True),
        ("www.OpenSubtitles.org", True),
        ("Advertise your product or brand here", True),
        ("字幕组：翻译", True),
        ("Translation: somebody", True),
        ('Previously on "Lost"...', True),
        ("The letter was translated by my sister.", False),
        ("It was ripped off when he was attacked by the smoke.", False),
        ("Sub's here from H.Q. I need your help.", False),
        ("I read the subtitles.", False),
        ("Sink the boat.", False),
    ],
)
def test_credits_are_known(text: str, expected: bool):
    assert steps.is_credit(text) == expected


def test_a_turn_without_words_a_long_one_and_a_broken_one():
    assert steps.has_no_words("... 12!")
    assert not steps.has_no_words("No.")
    assert steps.is_too_long("word " * 81)
    assert not steps.is_too_long("word " * 80)
    assert steps.is_broken("I donâ€™t")
    assert steps.is_broken("caf\ufffd")
    assert not steps.is_broken("café, 你好")


def test_scripts_are_told_apart_by_most_letters():
    assert steps.has_other_script("你好吗 OK", "en")
    assert not steps.has_other_script("I said 你好 to him", "en")
    assert steps.has_other_script("good morning", "zh")
    assert not steps.has_other_script("доброе утро", "ru")


def test_dialogues_that_say_too_little_or_the_same():
    assert steps.is_too_short(["Hi.", "Hello there."])
    assert not steps.is_too_short(["Where have you been?", "At home."])
    assert steps.is_repetitive(["Go!", "go!", "Go!", "Stop."])
    assert not steps.is_repetitive(["No!", "No!"])


def test_another_language_is_known_by_the_lack_of_common_words():
    french = ["Je ne sais pas ce que tu veux dire avec cette histoire", "Moi non plus, mais il faut partir maintenant"]
    english = ["I don't know what you want to say with this story", "Me neither, but we have to go now"]
    assert steps.is_not_english(french)
    assert not steps.is_not_english(english)
    assert not steps.is_not_english(["Bonjour!", "Salut!"])  # too short to tell


def turn(number: int, text: str) -> CueTurn:
    return CueTurn("f.srt", (number,), number * 2.0, number * 2.0 + 1, text)


def clean(*texts: str, kind: str = "subtitles", language: str = "en"):
    counts = Counts()
    cleaned = cleaning_for(kind, language).clean([turn(number, text) for number, text in enumerate(texts, 1)], counts)
    segments = [[one.text for one in segment] for segment in cleaned.segments if segment]
    return segments, [(one.cues[0], reason) for one, reason in cleaned.dropped], counts


def test_what_is_no_utterance_goes_and_the_dialogue_goes_on():
    segments, dropped, counts = clean(
        "- Hi there.", "[PHONE RINGS]", "Who is it?", "Subtitles by me", "Who is it, mum?"
    )
    assert segments == [["Hi there.", "Who is it?", "Who is it, mum?"]]
    assert dropped == [(2, cleaning.NO_WORDS), (4, cleaning.CREDITS)]
    assert counts.changed["sound descriptions"] == 1
    assert counts.changed["spaces and dashes"] == 2


def test_an_utterance_that_cannot_be_used_cuts_the_dialogue():
    segments, dropped, _ = clean("Hello you.", "blah " * 100, "What was that?", "Nothing.")
    assert segments == [["Hello you."], ["What was that?", "Nothing."]]
    assert dropped == [(2, cleaning.TOO_LONG)]


def test_a_long_turn_that_comes_twice_is_kept_once():
    segments, dropped, _ = clean("Where have you been?", "where", "Where have you been?", "Where have you been?")
    assert segments == [["Where have you been?", "where", "Where have you been?"]]
    assert dropped == [(4, cleaning.REPEATED)]


def test_a_post_that_cannot_be_used_ends_its_thread():
    segments, dropped, counts = clean(
        "去吗[哈哈]", "去！！！", "加微信 vx: abc12345", "好", kind="posts", language="zh"
    )
    assert segments == [["去吗", "去！"]]
    assert [reason for _, reason in dropped] == ["contact details (adverts)", cleaning.AFTER]
    assert counts.changed["[emoticons]"] == 1


def test_the_reason_of_a_dialogue_is_the_first_that_holds():
    plan = cleaning_for("subtitles", "en")
    assert plan.problem([turn(1, "Hi.")]) == cleaning.SINGLE
    assert plan.problem([turn(1, "Hi."), turn(2, "Hello.")]) == cleaning.TOO_SHORT
    assert plan.problem([turn(1, "Where have you been all day?"), turn(2, "At home.")]) is None
