"""ChatML, the format that marks who speaks for chat models: every turn has a header, an end and a new line.

    <|im_start|>user
    I lost my job.<|im_end|>
    <|im_start|>assistant (consoling)
    I am so sorry.<|im_end|>

The header of a reply may say in brackets what the reply is to do. `answers` heads a turn that stands *behind* its own
reply: what the speaker must have said, to be answered so. A model with a voice of its own has headers for it next to
the assistant's: `attentive (consoling)`. Where a tokenizer lacks the two marks, its own start and end tokens take their
places.
"""

from __future__ import annotations

from collections.abc import Iterable

from listenwell.text.tokenizer import Tokenizer

SPEAKER, LISTENER, ANSWERED, LINE = "speaker", "listener", "answers", "line"
"""What the parts of the form are called that are no label: three headers, and what follows an end."""

NAMES = {SPEAKER: "user", LISTENER: "assistant", ANSWERED: "answers"}
"""How the text calls those that have the word; `answers` is one token, as `user` is."""


def voice_header(voice: str, label: str = "") -> str:
    """What the header of a reply in this voice is called, and what it reads: with a label, or plain."""
    return f"{voice} ({label})" if label else voice


def chat_headers(tokenizer: Tokenizer, labels: Iterable[str], voice: str = "") -> dict[str, list[int]]:
    """The ids of every header by what it stands for: the roles, `answers`, a reply with each label, in the voice too if
    there is one; and of a line."""
    if tokenizer.kind != "backbone":
        raise ValueError(
            "turns: chatml is how a pretrained language model reads them; name its tokenizer, "
            "text: {kind: backbone, backbone: NAME}"
        )
    labels = list(labels)
    if taken := sorted({*NAMES, LINE} & {*labels}):
        raise ValueError(f"a label is called {taken[0]}, as a header already is; call the label otherwise")
    texts = {**NAMES, **{label: voice_header(NAMES[LISTENER], label) for label in labels}}
    if voice:
        texts |= {header: header for header in (voice_header(voice, label) for label in ("", *labels))}
    headers = {key: [tokenizer.start, *tokenizer.encode(f"{text}\n")] for key, text in texts.items()}
    return {**headers, LINE: tokenizer.encode("\n")}
