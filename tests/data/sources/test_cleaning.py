"""Each cleaning step alone, the filter for advertisers, and all steps together."""

import json

import pytest

from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources.cleaning import TEXT_STEPS, AdvertFinder, Cleaner, has_contact, pipeline, steps
from listenwell.data.sources.cleaning.adverts import find_advertisers, is_advert


def talk(*texts, id="d"):
    return Dialogue(
        id, tuple(Turn(("speaker", "listener")[i % 2], text) for i, text in enumerate(texts)), language="zh"
    )


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        (steps.narrow_letters, "ＱＡＱ　１０，好", "QAQ 10，好"),
        (steps.strip_links, "看http://t.cn/Abc123好", "看 好"),
        (steps.strip_links, "我在:http://t.cn/Abc123", " "),
        (steps.strip_links, "去www.baidu.com/s?wd=1看 O网页链接", "去 看  "),
        (steps.strip_links, "第3.5节", "第3.5节"),
        (steps.strip_reposts, "我也是//@Bob: 算我一个//@Amy: 去吗", "我也是"),
        (steps.strip_names, "@某某some-one 来", "  来"),
        (steps.strip_names, "回复@某个_name的:早", " 早"),
        (steps.strip_hashtags, "#王者荣耀# 好玩", "  好玩"),
        (steps.strip_hashtags, "我是#1", "我是#1"),
        (steps.strip_emoticons, "好[哈哈][doge][笑cry]", "好"),
        (steps.strip_emoticons, "见[1]和[这是一个很长的说明]", "见[1]和[这是一个很长的说明]"),
        (steps.strip_symbols, "生日🎂快乐❤️ 25°C 5≤6", "生日 快乐   25°C 5≤6"),
        (steps.shorten_punctuation, "真的！！！？？走。。。好......", "真的！？走…好…"),
        (steps.shorten_punctuation, "啊？！？！——他", "啊？！——他"),
        (steps.shorten_repeats, "哈哈哈哈哈哈10000哈嘿哈嘿哈嘿哈嘿", "哈哈哈哈10000哈嘿哈嘿哈嘿"),
        (steps.shorten_repeats, "谢谢谢谢", "谢谢谢谢"),
        (steps.tidy_spaces, "  ：你好 ，在（ ）吗， ", "你好，在 吗"),
    ],
)
def test_a_step_changes_what_it_is_for(step, before, after):
    assert step(before) == after


@pytest.mark.parametrize(
    "face",
    ["(⊙o⊙)", "(*¯︶¯*)", "_(:з」∠)_", "╭(╯ε╰)╮", "→_→", "T^T", "TAT", "⊙﹏⊙", "-_-", "= =", ">_<", "^_^", ":)", "：）",
     "(^_-)", "orz", "(ง•̀_•́)", "==", "--", "/_\\", "><"],
)  # fmt: skip
def test_faces_are_taken_out(face):
    assert "".join(steps.strip_kaomoji(f"好{face}啊").split()) == "好啊"


@pytest.mark.parametrize(
    "text",
    [
        "（笑）",
        "(2020)",
        "(OK)",
        "(a=b)",
        "汉字（biāo）",
        "1+2=3",
        "3:30",
        "（如下：）",
        "0.0分",
        "10--20",
        "a==b",
        "STATE",
    ],
)
def test_what_is_no_face_stays(text):
    assert steps.strip_kaomoji(text) == text


@pytest.mark.parametrize(
    "text", ["加微信13800000000", "我的Q群是12345678", "微信号：some_name1", "a.b@c.com", "电话010-12345678"]
)
def test_contact_details_are_seen(text):
    assert has_contact(text)


@pytest.mark.parametrize("text", ["我今年25岁", "微信都可以", "2012年08月24日", "电话亭", "iq高", "@小明 你好"])
def test_what_is_no_contact_is_not_seen(text):
    assert not has_contact(text)


def test_speakers_who_post_nearly_the_same_or_adverts_are_found():
    posts = [
        *(("robot", f"本店今日上新，进来看看一定有惊喜{n} http://t.cn/{n} @user{n}") for n in range(4)),
        *(("seller", text) for text in ("代购加微信", "全场包邮，快下单", "我回家了")),
        *(
            ("person", text)
            for text in ("今天下雨了，没带伞", "加班到十点才回家吃饭", "哈哈哈", "哈哈哈", "这家店包邮诶")
        ),
        ("once", "代购加微信"),
    ]
    assert find_advertisers(posts) == {"robot", "seller"}
    assert is_advert("代购加微信")


def test_only_the_last_posts_of_a_speaker_are_remembered():
    finder = AdvertFinder(window=2)
    for number in range(9):
        finder.add("robot", f"第{number}次：今天的天气非常适合出门走一走")
    assert len(finder.speakers["robot"].recent) == 2
    assert finder.advertisers() == {"robot"}


def test_examples_show_the_place_of_the_change_and_no_contact_details():
    cleaner = Cleaner()
    list(cleaner.clean([talk("很" + "长短" * 30 + "的话[哈哈]", "加我微信13800000000"), talk("好", "打13800000000吧")]))
    assert cleaner.counts["[emoticons]"].example == "…" + "长短" * 9 + "的话[哈哈] → …" + "长短" * 9 + "的话"
    assert cleaner.counts[pipeline.CONTACT].example == "加我***"


def test_a_dialogue_is_cleaned_and_every_change_is_counted():
    cleaner = Cleaner()
    turns = (Turn("speaker", "@小明 你好！！！", Label("happy")), Turn("listener", "嗯[哈哈]"))
    (cleaned,) = cleaner.clean([Dialogue("d", turns, source="weibo", split="train", language="zh")])
    assert cleaned.turns == (Turn("speaker", "你好！", Label("happy")), Turn("listener", "嗯"))
    assert (cleaned.id, cleaned.source, cleaned.split, cleaned.language) == ("d", "weibo", "train", "zh")
    changed = {name: count.changed for name, count in cleaner.counts.items() if count.changed}
    assert changed == {"@names": 1, "[emoticons]": 1, "repeated punctuation": 1, "spaces": 1}
    assert cleaner.counts["[emoticons]"].example == "嗯[哈哈] → 嗯"


def test_an_unusable_utterance_ends_its_dialogue():
    cleaner = Cleaner(longest=5)
    dialogues = [
        talk("你好", "你好啊", "[哈哈]", "怎么", id="empty"),
        talk("你好", "好", "一二三四五六", id="long"),
        talk("去吗", "[泪]", "走", id="dropped"),
        talk("好吧", "在吗", "加我微信13800000000", id="advert"),
    ]
    assert [(d.id, len(d.turns)) for d in cleaner.clean(dialogues)] == [("empty", 2), ("long", 2), ("advert", 2)]
    left_out = {name: (c.utterances, c.dialogues) for name, c in cleaner.counts.items() if c.utterances}
    assert left_out == {pipeline.CONTACT: (1, 0), pipeline.EMPTY: (5, 1), pipeline.TOO_LONG: (1, 0)}


def test_length_is_counted_in_characters_of_chinese_and_words_of_latin():
    cleaner = Cleaner(longest=4)
    dialogues = [
        talk("hello there my friend", "好", id="a"),
        talk("一二三四", "好", id="b"),
        talk("一二三四五", "好", id="c"),
    ]
    assert [dialogue.id for dialogue in cleaner.clean(dialogues)] == ["a", "b"]


def test_a_single_post_is_kept_or_left_out():
    cleaner = Cleaner()
    assert [dialogue.id for dialogue in cleaner.clean([talk("好啊", id="kept"), talk("[泪]", id="gone")])] == ["kept"]


def test_dialogues_that_are_the_same_once_clean_are_duplicates():
    cleaner = Cleaner()
    assert len(list(cleaner.clean([talk("你好！！", "好"), talk("你好！", "好[哈哈]"), talk("你好", "好")]))) == 2
    count = cleaner.counts[pipeline.DUPLICATE]
    assert (count.dialogues, count.utterances, count.example) == (1, 2, "你好！")


def test_numbers_are_an_answer_and_marks_are_none():
    cleaner = Cleaner()
    assert [d.id for d in cleaner.clean([talk("多少钱", "200", id="a"), talk("多少钱", "。。。", id="b")])] == ["a"]


def test_the_cleaner_streams():
    def endless():
        number = 0
        while True:
            number += 1
            yield talk(f"第{number}次", "好")

    cleaned = Cleaner().clean(endless())
    assert [next(cleaned).turns[0].text for _ in range(3)] == ["第1次", "第2次", "第3次"]


def test_data_clean_writes_the_dialogues_and_prints_every_step(tmp_path, capsys, monkeypatch):
    from listenwell.commands.data import data

    monkeypatch.setenv("COLUMNS", "160")
    source, out = tmp_path / "test1_testdata.jsonl", tmp_path / "clean.jsonl"
    source.write_text(json.dumps(["你好[哈哈]！！", "好"]) + "\n" + json.dumps(["[泪]", "好"]))
    data("clean", "weibo-raw", path=source, out=out)
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*TEXT_STEPS, pipeline.EMPTY, "1 of 2 dialogues written"))
    assert "你好[哈哈]！！ → 你好！！" in printed
    assert [turn["text"] for turn in json.loads(out.read_text())["turns"]] == ["你好！", "好"]
    data("clean", "weibo-raw", path=source, out=out, json=True)
    assert json.loads(capsys.readouterr().out)["steps"]["empty utterances"]["dialogues"] == 1
    with pytest.raises(ValueError, match=r"data clean needs --out FILE\.jsonl"):
        data("clean", "weibo-raw", path=source)


@pytest.mark.data
@pytest.mark.parametrize(("source", "read", "written"), [("weibo-raw", 3_016, 1_953), ("lccc", 30_000, 29_786)])
def test_the_real_threads_give_the_counts(source, read, written):
    from listenwell.data.sources import Report, find_data
    from listenwell.data.sources import read as read_source

    try:
        find_data(source)
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")
    cleaner, report = Cleaner(), Report()
    kept = sum(1 for _ in cleaner.clean(read_source(source, report=report)))
    assert (report.dialogues, kept) == (read, written)
    assert read - written == sum(count.dialogues for count in cleaner.counts.values())
