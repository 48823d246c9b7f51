"""A pretrained model's own tokenizer behind the same interface as ours."""

import pytest
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from listenwell.backbones import BackboneError, find_backbone, locate
from listenwell.text import TextConfig, Tokenizer, backbone_tokenizer, train_tokenizer, words
from listenwell.training import run

FAMILIES = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "roberta": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
    "chat": ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<file_sep>"),
}
PIECES = ("i", "am", "so", "happy", "un", "##happy", "!", "to", "##day", "[", "]", "sep", "<", ">", "/", "s", "|")


@pytest.fixture
def backbone(tmp_path):
    """Make a small pretrained tokenizer of a family: word pieces, truncated to four tokens and padded, as some are."""

    def make(family):
        specials = FAMILIES[family]
        vocabulary = {token: index for index, token in enumerate((*specials, *PIECES))}
        backend = Backend(models.WordPiece(vocabulary, unk_token=specials[1 if family != "chat" else 0]))
        backend.normalizer = normalizers.Lowercase()
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        backend.add_special_tokens([AddedToken(token, special=True) for token in specials])
        backend.enable_truncation(4)
        backend.enable_padding(length=8)
        folder = tmp_path / family
        folder.mkdir()
        backend.save(str(folder / "tokenizer.json"))
        return folder

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_a_backbone_s_tokens_go_there_and_back(backbone, family):
    tokenizer = train_tokenizer([], TextConfig("backbone", backbone=str(backbone(family))))
    ids = tokenizer.encode("I am so unhappy today!")
    assert [tokenizer.token(index) for index in ids] == ["i", "am", "so", "un", "##happy", "to", "##day", "!"]
    assert tokenizer.decode([*ids, tokenizer.end]) == "I am so unhappy today!"


def test_what_is_uncased_is_written_as_people_write_and_has_the_same_words():
    pieces = ("[UNK]", *words("i 'm know she well - known said yes . ! , ( ) 3 : 30 p m t don s ' re you"))
    backend = Backend(models.WordPiece({piece: index for index, piece in enumerate(dict.fromkeys(pieces))}))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens([AddedToken(name, special=True) for name in FAMILIES["bert"]])
    tokenizer = Tokenizer(backend, "backbone")
    assert tokenizer.uncased
    for text in (
        "I'm well-known. She said yes, you know!",
        "I don't know (you're well). I said 3:30 p.m.",
    ):
        plain = backend.decode(tokenizer.encode(text))
        assert plain != text
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert words(tokenizer.decode(tokenizer.encode(text))) == words(text)


def test_what_is_cased_is_written_as_it_came(backbone):
    backend = Backend.from_file(str(backbone("bert") / "tokenizer.json"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer = Tokenizer(backend, "backbone")
    assert not tokenizer.uncased
    assert tokenizer.decode(tokenizer.encode("so happy! i")) == "so happy! i"


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("bert", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[CLS]"]),
        ("roberta", ["<pad>", "<unk>", "<s>", "</s>", "<s>"]),
        ("chat", ["<|endoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>"]),
    ],
)
def test_its_special_tokens_play_the_parts_of_ours(backbone, family, names):
    tokenizer = backbone_tokenizer(str(backbone(family)))
    v = tokenizer.vocabulary
    assert [tokenizer.token(index) for index in (v.pad, v.unk, v.start, v.end, v.ctx)] == names
    assert v.size == len(FAMILIES[family]) + len(PIECES)
    banned = {tokenizer.token(index) for index in tokenizer.banned}
    assert banned == {*FAMILIES[family]} - {tokenizer.token(tokenizer.end)}, "no reply holds a special token"


def test_what_a_person_types_never_becomes_a_special_token(backbone):
    tokenizer = backbone_tokenizer(str(backbone("bert")))
    assert tokenizer.end not in tokenizer.encode("happy [SEP] happy")


def test_it_is_saved_in_a_checkpoint_and_read_again(backbone, tmp_path):
    tokenizer = backbone_tokenizer(str(backbone("bert")))
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json", "backbone")
    long = "i am so happy to be so unhappy today!"
    assert again.encode(long) == tokenizer.encode(long)
    assert len(again.encode(long)) > 8
    assert again.vocabulary == tokenizer.vocabulary
    assert again.banned == tokenizer.banned


def test_a_recipe_trains_with_a_backbone_s_tokens(backbone, tiny_recipe, tmp_path):
    text = TextConfig("backbone", backbone=str(backbone("bert")))
    best = run.train(tiny_recipe(text=text), tmp_path / "run", quiet=True)
    import listenwell

    reply = listenwell.load(best).reply(["I am so happy today!"])
    assert "[" not in reply.text


def test_a_backbone_that_is_not_there_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BackboneError, match=r"backbone 'no/such-model' not found: not a folder, and not .* the hub"):
        find_backbone("no/such-model")
    with pytest.raises(BackboneError, match=r"no config\.json or tokenizer\.json in this folder"):
        find_backbone(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackboneError, match=r"tokenizer\.json: the backbone has no tokenizer of this form"):
        backbone_tokenizer(str(tmp_path))
    with pytest.raises(ValueError, match=r"text\.backbone does not say whose"):
        train_tokenizer([], TextConfig("backbone"))


def test_tokens_of_no_known_family_are_refused(tmp_path):
    Backend(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"special tokens of no family that is known here: \[PAD\] \[UNK\]"):
        backbone_tokenizer(str(tmp_path))


def test_an_installed_package_is_found_by_the_model_s_name(tmp_path, monkeypatch, backbone):
    package = tmp_path / "carrier_of_a_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')")
    backbone("bert").rename(package / "weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(locate.CARRIERS, "some/model", (("carrier_of_a_model", "weights"),))
    assert find_backbone("some/model") == package / "weights"
    monkeypatch.setitem(locate.SHORT, "some", "some/model")
    assert find_backbone("some") == package / "weights"


def test_minilm_from_an_installed_package():
    if not locate.carried(locate.SHORT["minilm"]):
        pytest.skip("no installed package carries MiniLM")
    tokenizer = backbone_tokenizer("minilm")
    assert len(tokenizer) == 30_522
    assert [tokenizer.token(i) for i in tokenizer.encode("I'm heartbroken")] == ["i", "'", "m", "heart", "##broken"]
