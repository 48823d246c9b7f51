import jsonargparse
import pytest

from listenwell.decoding import Changes, Decoding
from listenwell.systems.house.options import HouseDecoding, Lean, Rerank


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "nucleus"}, "Decoding.method is 'nucleus', expected one of greedy, sample, beam"),
        ({"max_length": 0}, "Decoding.max_length is 0, expected an integer of at least 1"),
        ({"max_length": 2.5}, "Decoding.max_length is 2.5, expected an integer of at least 1"),
        ({"min_length": -1}, "Decoding.min_length is -1, expected an integer of at least 0"),
        ({"min_length": 9, "max_length": 8}, "Decoding.min_length is 9, expected at most max_length, which is 8"),
        ({"temperature": 0.0}, "Decoding.temperature is 0.0, expected a finite number above 0"),
        ({"temperature": float("nan")}, "Decoding.temperature is nan, expected a finite number above 0"),
        ({"top_k": -1}, "Decoding.top_k is -1, expected an integer of at least 0"),
        ({"top_p": 0.0}, "Decoding.top_p is 0.0, expected a number above 0 and at most 1"),
        ({"top_p": 1.5}, "Decoding.top_p is 1.5, expected a number above 0 and at most 1"),
        ({"beams": True}, "Decoding.beams is True, expected an integer of at least 1"),
        ({"length_penalty": float("inf")}, "Decoding.length_penalty is inf, expected a number from -10 to 10"),
        ({"block_ngrams": -3}, "Decoding.block_ngrams is -3, expected an integer of at least 0"),
        ({"candidates": 0}, "Decoding.candidates is 0, expected an integer of at least 1"),
        ({"candidates": 2}, "Decoding.candidates is 2, expected 1 for method greedy"),
        (
            {"method": "beam", "beams": 2, "candidates": 3},
            "Decoding.candidates is 3, expected at most beams, which is 2",
        ),
        ({"seed": 0.5}, "Decoding.seed is 0.5, expected an integer"),
        ({"early": 1}, "Decoding.early is 1, expected true or false"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_found_and_expected(wrong, message):
    with pytest.raises(ValueError, match="Decoding") as error:
        Decoding(**wrong)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        ({}, "greedy+max40"),
        ({"method": "beam", "block_ngrams": 3}, "beam5+lp1+block3+max40"),
        ({"method": "beam", "early": True}, "beam5+lp1+early+max40"),
        ({"early": True}, "greedy+max40"),
        ({"method": "beam", "beams": 8, "length_penalty": 0.65, "candidates": 2}, "beam8+lp0.65+max40+of2"),
        ({"method": "sample", "top_k": 50, "temperature": 0.7, "seed": 3}, "sample+t0.7+k50+seed3+max40"),
        ({"method": "sample", "top_p": 0.9, "candidates": 4}, "sample+t1+p0.9+seed0+lp1+max40+of4"),
        ({"min_length": 0, "max_length": 12}, "greedy+min0+max12"),
        ({"method": "beam", "seed": 2}, "beam5+lp1+seed2+max40"),
        ({"rerank": Rerank(plan=0.3, new=1)}, "greedy+max40+rerank(plan0.3,new1)"),
        ({"lean": Lean(positivity=0.5)}, "greedy+max40+lean0.5x2"),
        ({"lean": Lean(strength=3)}, "greedy+max40"),
    ],
)
def test_a_signature_names_what_shaped_the_replies(options, signature):
    assert HouseDecoding(**options).signature() == signature


def test_the_options_are_flags():
    def talk(decoding: Decoding = Decoding()) -> Decoding:  # noqa: B008, the options are frozen
        return decoding

    flags = ["--decoding.method=beam", "--decoding.beams=3", "--decoding.length_penalty=0.5"]
    options = jsonargparse.auto_cli(talk, args=flags)
    assert options == Decoding(method="beam", beams=3, length_penalty=0.5)


def test_changes_leave_all_else_as_it_was():
    own = HouseDecoding(method="beam", beams=5, block_ngrams=4, rerank=Rerank(plan=1, fresh=2), lean=Lean(strength=3))
    changed = Changes({"beams": 32, "rerank": {"plan": 0.5}, "lean": {"positivity": 0.8}}).over(own)
    assert (changed.beams, changed.block_ngrams) == (32, 4)
    assert changed.rerank == Rerank(plan=0.5, fresh=2)
    assert changed.lean == Lean(positivity=0.8, strength=3)
    assert Decoding(method="greedy").over(own) == Decoding(method="greedy")


def test_changes_that_do_not_fit_say_so():
    with pytest.raises(ValueError, match=r"Decoding.candidates is 4, expected 1 for method greedy"):
        Changes({"candidates": 4}).over(Decoding())
    with pytest.raises(ValueError, match=r"this system's decoding has no rerank; its options are method"):
        Changes({"rerank": {"plan": 1}}).over(Decoding())


def test_a_stream_is_one_reply_whatever_else_was_to_be_weighed():
    leaning = Lean(positivity=0.5)
    sampled = HouseDecoding(method="sample", temperature=0.7, candidates=4, rerank=Rerank(plan=1), lean=leaning)
    assert sampled.streamed() == HouseDecoding(method="sample", temperature=0.7, lean=leaning)
    assert (
        Decoding(method="beam", beams=5, candidates=2, block_ngrams=3).streamed().signature() == "greedy+block3+max40"
    )
