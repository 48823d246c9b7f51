"""Fixed answers to greetings, thanks, goodbyes and questions about who is speaking.

A model trained on people answers "are you human?" as they did. What it says about itself must be true, so this is not
left to the model. A message counts only if it is nothing else: "hi, my dog died" is not a greeting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from listenwell.data.dialogue import Turn

_END = r"[\s!.,?~:)]*"
_NAME = r"(?: (?:there|everyone|again|friend|buddy|bot|house|listenwell))?"


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A kind of message and its answers, in the order in which a conversation uses them."""

    kind: str
    pattern: re.Pattern[str]
    replies: tuple[str, ...]


def _kind(kind: str, pattern: str, *replies: str) -> SmallTalk:
    return SmallTalk(kind, re.compile(rf"(?:{pattern}){_END}", re.IGNORECASE), replies)


KINDS: tuple[SmallTalk, ...] = (
    _kind(
        "a question about who is speaking",
        r"(?:(?:wait|ok|so|hey|but|and)[, ]+)*(?:are|r) (?:you|u) (?:a |an |really |actually |even )*"
        r"(?:human|person|real person|real|robot|bot|machine|program|computer|chat ?bot|ai|a\.i\.|alive)(?: being)?"
        r"(?:,? or (?:a |an )?\w+)?|"
        r"(?:who|what) (?:are|r) (?:you|u)(?: exactly| really)?|"
        r"am i (?:talking|speaking|chatting) (?:to|with) (?:a |an )?(?:real )?"
        r"(?:human|person|robot|bot|machine|program|computer|ai)(?: or (?:a |an )?\w+)?|"
        r"is (?:this|that|there) (?:a |an )?(?:real )?(?:human|person|robot|bot|machine|program|ai)(?: there)?",
        "I'm a program, not a person. I can listen and reply, but I have no feelings and no life of my own. "
        "What would you like to talk about?",
        "I'm a computer program that tries to listen well. No person reads this. I'm still glad to go on, if you like.",
    ),
    _kind(
        "a question about a name",
        r"(?:what is|what's|whats) (?:your|ur) name|do you have a name|(?:how|what) (?:should|can|do) i call you",
        "I'm called listenwell. I'm a program, not a person. What would you like me to call you?",
        "listenwell. I'm a program that tries to listen.",
    ),
    _kind(
        "a question about how the system feels",
        r"(?:(?:hi|hello|hey)[,! ]+)?(?:how are you|how are u|how r u|how're you|how you doing|how are things|"
        r"what's up|whats up|sup|how is it going|how's it going)(?: doing| today| feeling)*",
        "I'm a program, so I have no good or bad days, but thank you for asking. How are you?",
        "Nothing changes for me, I'm a program. I'd rather hear about you.",
    ),
    _kind(
        "a greeting",
        rf"(?:hi+|hello+|hey+|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|hallo){_NAME}",
        "Hi! How are you doing today?",
        "Hello again. What's on your mind?",
        "I'm here. Tell me whatever you like.",
    ),
    _kind(
        "thanks",
        r"(?:ok(?:ay)?[, ]+)?(?:thanks|thank you|thank u|thx|ty|cheers|many thanks)(?: so much| a lot| very much)?"
        r"(?: for (?:listening|your help|the talk|being here|everything|that))?"
        r"(?:[,.! ]+(?:that helped|i feel better now))?",
        "You're welcome. I'm glad you told me about it.",
        "Any time. Is there anything else on your mind?",
        "You're welcome.",
    ),
    _kind(
        "a goodbye",
        r"(?:(?:ok(?:ay)?|well|alright|anyway|thanks|thank you)[,.! ]+)*"
        r"(?:bye+|goodbye|good ?night|good bye|see you|see ya|cya|talk (?:to you )?later|ttyl|gotta go|got to go|"
        r"i (?:have|need|'ve got) to go|i should go|take care)(?: now| soon| later| then| bye)*",
        "Take care of yourself. You can come back whenever you like.",
        "Goodbye, and all the best.",
    ),
)


def small_talk(context: Sequence[Turn]) -> tuple[str, str] | None:
    """Returns the kind of small talk of the last message, and the answer; None if it is none or all answers were given.

    Within a conversation, each time a kind comes up, its next answer is given.
    """
    message = " ".join(context[-1].text.split())
    earlier = {turn.text for turn in context if turn.speaker == "listener"}
    for one in KINDS:
        if one.pattern.fullmatch(message):
            answer = next((text for text in one.replies if text not in earlier), None)
            return None if answer is None else (one.kind, answer)
    return None
