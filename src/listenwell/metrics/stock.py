"""The closed list of stock phrases that define a bland reply. English only.

A reply is bland if it says "sorry to hear" anywhere, or if it is nothing but stock phrases: "oh no ! that is
terrible ." is, "that is great ! what did you cook ?" is not, since no stock phrase asks about something specific to the
speaker. People say "sorry to hear" in 1.9 % of EmpatheticDialogues' test replies.

Changing the list changes the numbers: also increment LIST, which is part of the signature.
"""

from __future__ import annotations

import re

LIST = "en1"

_DEGREE = (
    r"(?:so|very|really|truly|pretty|quite|just|too|such|a|an|the|absolutely|always|super|kind of|a bit|not|no|how|"
    r"extremely|totally|completely|definitely|still)"
)

_QUALITY = (
    r"(?:amazing|annoying|awesome|awful|bad|beautiful|best|better|bummer|cool|crazy|cute|difficult|disappointing|"
    r"disgusting|embarrassing|excellent|exciting|fair|fantastic|fine|frustrating|fun|funny|good|great|gross|hard|"
    r"hilarious|horrible|impressive|incredible|interesting|lovely|lot of fun|much fun|neat|nice|ok|pain|painful|"
    r"perfect|relief|rough|rude|sad|scary|shame|strange|stressful|surprising|sweet|terrible|terrifying|thoughtful|"
    r"tough|true|understandable|unfortunate|upsetting|weird|wonderful|worst)"
)

_SEEMS = (
    r"(?:(?:(?:that|it|this|things|life) )?(?:(?:must|would|will|could|can|should|might) )?(?:really )?"
    r"(?:is|was|be|been|have been|sounds?|seems?|feels?)(?: like)?)"
)

_THING = r"(?:news|thing|feeling|idea|time|one|situation|experience|stuff)"

_SOMEONE = r"(?:you|him|her|them)"

_HOLDS = r"(?:will|can|do|does|is|are|be|gets?|goes?|works?|turns?|feels?|have|has|enjoy)"

_WELL = (
    r"(?:better|well|ok|good|great|fine|fun|soon|again|out|it|that|them|too|all|the best|up|in the end|for the best|"
    rf"for {_SOMEONE}|a (?:good|great|nice|wonderful) (?:time|day|one))"
)

# No word may match in two ways inside a repeated group: a repetitive reply would then cause exponential backtracking.
_CLAUSES = (
    # Sounds and single words.
    r"(?:ha|he|haha+|hehe+|lol|hm+|uh|oh|ah|aw|ooh|ugh|ew|wow|whoa|yay|yikes|ouch|yuck|dang|damn|darn|geez|hey|hi|"
    r"hello|man|huh)(?: (?:ha|oh))*",
    r"(?:oh )?(?:my )?(?:god|goodness|gosh|lord|my|no|dear|boy|man)|omg|holy (?:cow|moly)",
    r"yes|yeah|yep|ok|right|true|sure|exactly|absolutely|definitely|indeed|totally|really|seriously|of course|for sure",
    r"no (?:way|problem|wonder)|very true|(?:yes )?it is|i see|got it|gotcha|hopefully|too|though",
    r"me (?:too|neither|either)|same(?: here)?|you and me both",
    # Sorrow.
    rf"(?:i am |i feel )?(?:{_DEGREE} )*sorry(?: (?:about|for) (?:that|it|this|you|your loss|all that))?",
    r"(?:(?:that|it|this|life) )?(?:really |just |totally |must )*(?:sucks?|stinks?|hurts?|happens)"
    r"(?: sometimes| to the best of us)?",
    r"(?:my|you have my) (?:deepest |sincere )*condolences",
    r"i (?:really )?hate (?:that|it|when that happens|it when that happens)",
    # Joy.
    r"(?:congratulations?|congrats)(?: (?:to you|on that|again))?|(?:good|great|nice) (?:job|work|one)|well done",
    rf"i am (?:{_DEGREE} )*(?:happy|glad|proud|excited)(?: (?:for|of) {_SOMEONE})?(?: to hear (?:that|it))?",
    rf"(?:good|great) (?:for|on) {_SOMEONE}|lucky you|you are (?:so |very )*lucky",
    rf"you must (?:be|have been) (?:{_DEGREE} )*(?:happy|proud|excited|sad|upset|scared|angry|devastated|thrilled)",
    # A verdict on "that", or on nothing at all: "that is so sad", "sounds fun", "too bad", "how exciting".
    rf"(?:{_SEEMS} )?(?:{_DEGREE} )*{_QUALITY}(?: {_THING})?(?: to (?:hear|know)(?: that| it)?)?"
    rf"(?: (?:of|for) (?:{_SOMEONE}|anyone|everyone))?",
    r"that makes sense",
    # Understanding.
    r"(?:i (?:can |do |could |totally |completely |definitely |certainly |fully |really |just |also |only |not )*)?"
    r"(?:know|understand|imagine|relate|agree|get|feel|hear|bet|guess|see)(?: exactly)?"
    r"(?: (?:what you mean|how you feel|how (?:that|it) (?:feels?|is|goes)|(?:that|the|this) feeling|that|it|you|why|"
    r"with (?:you|that)|to that|the same way|right|it (?:is|was)|your pain|so|bad for you|what that is like))?"
    r"(?: completely| totally| too)?",
    r"i (?:would|will|do|am|was|did|have) (?:be |feel |have )?(?:the same(?: way| thing)?|too)",
    r"(?:i have )?been there|tell me about it|i (?:do|can|would) not blame you|you are (?:so |very )*(?:right|welcome)",
    r"i am sure(?: (?:it|that) (?:is|was))?|i do not know|who knows|i think so",
    # Wishes and comfort.
    r"(?:i )?(?:(?:really|do|just|sure) )*(?:hope|hopefully|wish|am sure) (?:that )?"
    rf"(?:it|things|everything|all|he|she|they|you|that|so)(?: (?:{_HOLDS}|{_WELL}))*",
    r"(?:good|best of) luck(?: (?:to you|with (?:that|it|everything)))?|best wishes",
    rf"(?:i )?wish you (?:{_WELL}|luck|all the best|the best of luck)",
    r"have (?:fun|a (?:good|great|nice) (?:time|day|one))",
    rf"(?:it|things|everything|you)(?: all)?(?: (?:{_HOLDS}|going to))+ {_WELL}",
    r"(?:do not worry|no worries|never mind)(?: about (?:it|that))?|hang in there|stay strong|cheer up|take care",
    r"keep it up|keep up the good work|you can do it|i believe in you",
    r"(?:thank you|thanks)(?: (?:so|very) much| a lot| for (?:that|sharing))?",
)

_STOCK = re.compile("|".join(f"(?:{clause})" for clause in _CLAUSES))

_SORRY_TO_HEAR = re.compile(r"\bsorry to hear\b")

# Words that lead into a clause or trail off without making it any less stock.
_LEAD = re.compile(r"^(?:(?:and|but|so|well|oh|ah|aw|wow|yes|yeah|no|man|ok|hey|dang|haha+|lol|omg|then|also|again) )+")
_TRAIL = re.compile(
    r"(?: (?:then|too|though|man|indeed|for you|as well|at all|lol|haha+|sometimes|my friend|dear|really))+$"
)

_SPELLINGS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"[’‘`´]", "'"),
        # Tokenizers put spaces around clitics in many ways ("i ' m", "i 'm", "do n't", "don 't"): remove them.
        (r"\s*'\s*(?=(?:m|s|re|ve|ll|d|t)\b)", "'"),
        (r"\s+n't\b", "n't"),
        (r"\b(?:i'm|im)\b", "i am"),
        (r"\b(that|it|what|there|he|she)'?s\b", r"\1 is"),
        (r"\b(you|they)'?re\b", r"\1 are"),
        (r"\b(i|you|they|we)'?ve\b", r"\1 have"),
        (r"\b(i|you|it|they|he|she|that|things|everything)'ll\b", r"\1 will"),
        (r"\b(i|you|it|they|he|she|that)'d\b", r"\1 would"),
        (r"\b(must|would|could)(?:'ve| of)\b", r"\1 have"),
        (r"\bcan(?:'t|t|not)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\bdont\b", "do not"),
        (r"\b(?:okay|alright|all right)\b", "ok"),
        (r"\b(?:yea|yup|ya)\b", "yeah"),
        (r"\ba+w+e?\b", "aw"),
        (r"\bo+h+\b", "oh"),
        (r"\ba+h+\b", "ah"),
    )
)


def normal(text: str) -> str:
    """Returns the text in lower case, with clitics joined and spelled out, and single spaces between words."""
    text = text.lower()
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return " ".join(text.split())


def says_sorry_to_hear(text: str) -> bool:
    """Does the reply say exactly "sorry to hear"?"""
    return bool(_SORRY_TO_HEAR.search(normal(text)))


def is_bland(text: str) -> bool:
    """Does the reply say "sorry to hear", or nothing but stock phrases? A reply without words is not bland."""
    whole = normal(text)
    if _SORRY_TO_HEAR.search(whole):
        return True
    clauses = [clause for part in re.split(r"[^\w\s']+", whole) if (clause := part.strip(" '"))]
    return bool(clauses) and all(_is_stock(clause) for clause in clauses)


def _is_stock(clause: str) -> bool:
    """Whether a clause is a stock phrase, as it is or without leading and trailing words."""
    if _STOCK.fullmatch(clause):
        return True
    core = _TRAIL.sub("", _LEAD.sub("", clause + " ").strip())
    return bool(_STOCK.fullmatch(core)) or not core
