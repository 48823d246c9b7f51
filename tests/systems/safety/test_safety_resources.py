"""The resources in a care reply, and the messages about a file that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from listenwell.configuration import ConfigError
from listenwell.systems.safety import care_reply, detect, is_care, load_resources
from listenwell.systems.safety.replies import WORDS
from listenwell.systems.safety.resources import KINDS

SIGN = detect("I want to kill myself")
assert SIGN is not None
TOWN = {
    "here": {
        "emergency": "333",
        "lines": [
            {"name": "Town line", "contact": {"en": "call 12", "zh": "拨打 12"}, "for": ["self-harm"]},
            {"name": "Shelter", "contact": "34", "for": ["danger"]},
        ],
    }
}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LISTENWELL_CARE", raising=False)
    monkeypatch.delenv("LISTENWELL_REGION", raising=False)


def written(folder: Path, data: object) -> Path:
    path = folder / "care.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return path


def test_no_country_is_assumed():
    text = care_reply(SIGN, load_resources())
    assert "findahelpline.com" in text
    assert not any(character.isdigit() for character in text)


def test_a_region_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LISTENWELL_REGION", "us")
    text = care_reply(SIGN, load_resources())
    assert "988" in text
    assert "911" in text
    assert "Domestic" not in text  # that line is for a different kind


def test_a_file_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LISTENWELL_CARE", str(written(tmp_path, TOWN)))
    chinese = detect("我不想活了")
    assert chinese is not None
    assert "Town line: call 12" in care_reply(SIGN, load_resources())
    assert "Town line: 拨打 12" in care_reply(chinese, load_resources())
    assert "Shelter" not in care_reply(SIGN, load_resources())


def test_every_shipped_region_can_be_named_at_every_sign_in_every_language():
    from dataclasses import replace

    import listenwell.systems.safety

    shipped = yaml.safe_load(
        (Path(listenwell.systems.safety.__file__).parent / "resources.yaml").read_text(encoding="utf-8")
    )
    for region in shipped:
        found = load_resources(region=region)
        for language in WORDS:
            for kind in KINDS:
                for directness in ("direct", "indirect"):
                    sign = replace(SIGN, kind=kind, directness=directness, language=language)
                    for again in (False, True):
                        text = care_reply(sign, found, again)
                        assert is_care(text)
                        assert found.emergency[language] in text
                        assert "{" not in text


def test_what_people_write_is_no_reply_of_care():
    assert not is_care("I'm glad you told me")
    assert not is_care("I am sorry to hear that.")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("us: [", "line 1: is not YAML"),
        ("", "expected regions by name"),
        ("- a", "expected regions by name"),
        ({"here": "911"}, "here: expected the keys emergency, lines"),
        ({"here": {"lines": []}}, "here: emergency is missing"),
        ({"here": {"emergency": 911, "lines": []}}, "here: emergency: put the number in quotes"),
        ({"here": {"emergency": " ", "lines": []}}, "here: emergency: expected text"),
        ({"here": {"emergency": {"en": "1"}, "lines": []}}, "here: emergency: zh is missing"),
        ({"here": {"emergency": "1", "lines": "x"}}, "here: lines: expected a list"),
        ({"here": {"emergency": "1", "lines": [{"name": "a"}]}}, "lines.0: contact is missing"),
        ({"here": {"emergency": "1", "lines": [{"nam": "a"}]}}, "lines.0: unknown key 'nam'; did you mean 'name'?"),
        (
            {"here": {"emergency": "1", "lines": [{"name": "a", "contact": "b", "for": ["selfharm"]}]}},
            "lines.0.for: unknown kind 'selfharm'; did you mean 'self-harm'?",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(tmp_path: Path, data: object, said: str):
    path = written(tmp_path, data)
    with pytest.raises(ConfigError) as problem:
        load_resources(path)
    assert str(problem.value).startswith(str(path))
    assert said in str(problem.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        load_resources(tmp_path / "nowhere.yaml")


def test_an_unknown_region_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LISTENWELL_REGION", "atlantis")
    with pytest.raises(ConfigError, match="unknown region 'atlantis'"):
        load_resources()
