import pytest

from listenwell.data.sources.detokenize import detokenise, join_characters


@pytest.mark.parametrize(
    ("spaced", "written"),
    [
        ("I don 't know , man .", "I don't know, man."),
        ("It 's what they 'll say , isn 't it ? !", "It's what they'll say, isn't it?!"),
        ("DON 'T . I 'II go , ma 'am , at six o 'clock .", "DON'T. I'II go, ma'am, at six o'clock."),
        ("That ’ s it . I ’ Ve seen O ’ Neal .", "That’s it. I’ve seen O’Neal."),
        ("I don ' t mind the parents ' room .", "I don't mind the parents' room."),
        ("Cook ' em , we 're runnin ' late !", "Cook 'em, we're runnin' late!"),
        ("Rock ' n ' roll of the ' 80s", "Rock 'n' roll of the '80s"),
        ("It says ' Keep off ' here .", "It says 'Keep off' here."),
        ("Shipped by ' S . S . America ' .", "Shipped by 'S.S. America'."),
        ('She says " hello " and " bye " .', 'She says "hello" and "bye".'),
        ('An open " quote stays .', 'An open " quote stays.'),
        ("The “ card catalog ” ( here ) .", "The “card catalog” (here)."),
        ("At 7 : 30 it costs $ 5,000 or 20 % .", "At 7:30 it costs $5,000 or 20%."),
        ("O . K . , at 2 p . m . in the U . S .", "O.K., at 2 p.m. in the U.S."),
        ("Well . . . wait . .. no ...", "Well... wait... no..."),
        ("Thank you . ... how is he ?", "Thank you. ... how is he?"),
        ("Mr. Smith - a good man - left .", "Mr. Smith - a good man - left."),
        ("Fine", "Fine"),
        ("", ""),
    ],
)
def test_english_is_put_together_again(spaced, written):
    assert detokenise(spaced) == written


@pytest.mark.parametrize("text", ["Isn't it, Mr. O'Neal?", "'Keep off,' she said: \"no!\"", "At 7:30 p.m. (20%)..."])
def test_english_as_it_is_written_stays(text):
    assert detokenise(text) == text


@pytest.mark.parametrize(
    ("spaced", "written"),
    [
        ("我 饿 了 。", "我饿了。"),
        ("打 c a l l 呀 T . T", "打call呀T.T"),
        ("我 爱 new york 的 冬 天", "我爱new york的冬天"),
        ("2 0 1 6 年", "2016年"),
        ("", ""),
    ],
)
def test_chinese_characters_are_joined(spaced, written):
    assert join_characters(spaced) == written
