"""Messages as the rules read them: one spelling for each word, however it was typed.

English becomes lower-case words with single spaces, contractions written out ("im", "I'm" → "i am"), slips and net
spellings mended ("k1ll", "suicde", "wanna"), words that change nothing left out ("really", "just"). A full stop stands
for every end of a sentence, a comma for every smaller break. Chinese loses its spaces; traditional characters and
net forms ("自sha", "想亖") take the usual form.
"""

from __future__ import annotations

import re
import unicodedata

# Laughter matters: it tells hyperbole from despair. It is kept as one word.
LAUGHTER = re.compile(r"[😂🤣😆😹]+|\b(?:l+o+l+|lmf?ao+|rofl|(?:ha|he){2,}h?|jk|j/k|xd)\b")

# Typed with or without the apostrophe. "ill", "id" and "were" are words too: see GUESSED.
CONTRACTIONS = {
    "im": "i am", "iam": "i am", "ive": "i have", "idk": "i do not know", "idc": "i do not care", "imma": "i will",
    "ima": "i will", "iwanna": "i want to", "dont": "do not", "doesnt": "does not", "didnt": "did not",
    "cant": "can not", "cannot": "can not", "couldnt": "could not", "wouldnt": "would not", "shouldnt": "should not",
    "wont": "will not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not",
    "aint": "am not", "havent": "have not", "hasnt": "has not", "hadnt": "had not", "neednt": "need not",
    "youre": "you are", "youd": "you would", "youll": "you will", "youve": "you have", "hes": "he is", "shes": "she is",
    "theyre": "they are", "theyd": "they would", "theyll": "they will", "theyve": "they have", "weve": "we have",
    "its": "it is", "itd": "it would", "itll": "it will", "thats": "that is", "thatd": "that would",
    "whats": "what is", "theres": "there is", "wheres": "where is", "whos": "who is", "lets": "let us",
    "everyones": "everyone is", "everythings": "everything is", "someones": "someone is", "nobodys": "no one is",
}  # fmt: skip

# Slips, chat spellings and synonyms that one word can stand for.
SPELLINGS = {
    "wanna": "want to", "wana": "want to", "wnna": "want to", "wnat": "want", "watn": "want", "whant": "want",
    "gonna": "going to", "gunna": "going to", "goin": "going", "gona": "going to", "finna": "going to",
    "tryna": "trying to", "gotta": "have to", "lemme": "let me", "bout": "about", "boutta": "about to",
    "kil": "kill", "kll": "kill", "killl": "kill", "kiill": "kill", "kiling": "killing", "killin": "killing",
    "dieing": "dying", "dyin": "dying", "ded": "dead", "alife": "alive", "livin": "living", "lyf": "life",
    "lief": "life", "tonite": "tonight", "2nite": "tonight", "2night": "tonight", "tmrw": "tomorrow", "tmr": "tomorrow",
    "tmrrw": "tomorrow", "2moro": "tomorrow", "tomorow": "tomorrow", "tommorow": "tomorrow", "tommorrow": "tomorrow",
    "rn": "now", "atm": "now", "currently": "now", "u": "you", "ur": "your", "ppl": "people", "plz": "please",
    "pls": "please", "evry": "every", "evryone": "everyone", "every1": "everyone", "everybody": "everyone",
    "evrybody": "everyone", "some1": "someone", "somebody": "someone", "no1": "no one", "noone": "no one",
    "nobody": "no one", "any1": "anyone", "anybody": "anyone", "nvr": "never", "nver": "never", "neva": "never",
    "cuz": "because", "cos": "because", "bc": "because", "becuase": "because", "anymor": "anymore",
    "nomore": "anymore", "wih": "wish", "hopless": "hopeless", "worthles": "worthless", "thru": "through", "nd": "and",
    "pils": "pills", "meds": "medication", "bf": "boyfriend", "gf": "girlfriend", "mum": "mom",
    "mommy": "mom", "mama": "mom", "daddy": "dad", "hubby": "husband", "selfharm": "self harm", "slef": "self",
    "selfharming": "self harming", "selfharmed": "self harmed", "sewerslide": "suicide", "suacide": "suicide",
    "suecide": "suicide", "soosicide": "suicide", "sewercide": "suicide", "offing": "killing", "selfdelete": "suicide",
    "unaliving": "unalive", "unalived": "unalive", "unaliveing": "unalive", "unlive": "unalive", "unliving": "unalive",
    "killmyself": "kill myself", "endmylife": "end my life", "wanttodie": "want to die", "enditall": "end it all",
    "wannadie": "want to die", "wantto": "want to", "alot": "a lot", "hav": "have", "woud": "would",
    "iwant": "i want", "becos": "because", "od": "overdose", "oding": "overdosing", "oded": "overdosed",
}  # fmt: skip

# "ill" and "id" are "i will" and "i would" where such a word follows.
GUESSED = {
    "ill": ("i will", {"kill", "be", "do", "just", "never", "end", "die", "jump", "take", "hurt", "make", "not", "go",
                       "stab", "shoot", "have", "miss", "see", "finally", "hang", "cut", "always", "only", "probably"}),
    "id": ("i would", {"rather", "be", "like", "love", "kill", "do", "just", "never", "die", "end", "jump", "prefer",
                       "take", "not", "have", "hurt", "finally", "gladly", "happily", "probably"}),
}  # fmt: skip

# They colour a statement and change nothing in it: "i just really want to fucking die".
FILLERS = frozenset(
    [
        "really",
        "literally",
        "actually",
        "honestly",
        "truly",
        "seriously",
        "legit",
        "lowkey",
        "highkey",
        "fr",
        "frfr",
        "fucking",
        "fuckin",
        "freaking",
        "frickin",
        "effing",
        "damn",
        "damned",
        "bloody",
        "goddamn",
        "simply",
        "genuinely",
        "definitely",
        "probably",
        "maybe",
        "perhaps",
        "so",
        "very",
        "quite",
        "even",
        "basically",
        "totally",
        "completely",
        "absolutely",
        "utterly",
        "sometimes",
        "often",
        "constantly",
        "always",
        "kinda",
        "sorta",
        "also",
        "finally",
        "ever",
        "desperately",
        "badly",
        "tbh",
        "ngl",
        "still",
        "somehow",
        "secretly",
        "suddenly",
        "deeply",
        "sincerely",
        "clearly",
        "obviously",
        "please",
        "oh",
        "ugh",
        "f*cking",
        "f**king",
        "fking",
    ]
)

# "just" colours too, but before these it says when: "i just took", "he just hit me".
DEEDS = frozenset(
    [
        "took",
        "taken",
        "swallowed",
        "drank",
        "downed",
        "overdosed",
        "ate",
        "ingested",
        "injected",
        "cut",
        "slit",
        "hit",
        "punched",
        "kicked",
        "choked",
        "stabbed",
        "shot",
        "slapped",
        "hurt",
        "beat",
        "threatened",
        "attacked",
        "pulled",
        "broke",
        "tried",
        "stopped",
    ]
)

# Words that are mended when a letter is missing, doubled, swapped or wrong. All are long and have no near neighbours.
MENDED = ("suicide", "suicidal", "myself", "overdose", "overdosed", "anymore", "tonight", "killing", "unalive")
NEIGHBOURS = frozenset(
    [
        "overdone",
        "overdoes",
        "overdosed",
        "kissing",
        "filling",
        "billing",
        "killings",
        "willing",
        "milling",
        "kicking",
        "skilling",
        "killin",
        "kilning",
        "kidding",
        "itself",
        "himself",
        "suicides",
        "tonights",
        "anymore",
        "yourself",
        "thyself",
    ]
)

# What leet digits and stars may stand for; other words with digits stay as they are.
LEET = str.maketrans("1!|3450$@7", "iiieasosat")
DISGUISED = (
    "kill", "killing", "killed", "die", "died", "dying", "dead", "death", "suicide", "suicidal", "unalive", "myself",
    "life", "cut", "cutting", "hang", "hanging", "harm", "self", "hurt", "overdose", "gun", "knife", "shoot", "murder",
    "fucking", "rape", "stab", "pills", "noose", "kms", "bleed", "wrist", "wrists",
)  # fmt: skip

PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"\b(my|your|him|her|them) sel(f|ves)\b(?! (?:esteem|confidence|worth|care|respect|image|harm))", r"\1sel\2"),
        (r"\bany (?:more|longer)\b|\bno more\b(?= [.,])|\bno more$", "anymore"),
        (r"\bno longer (?=want|wish|care|feel|have|see|know|deserve)", "do not "),
        (r"\b(?:right|this very|at this) (?:now|moment|second|minute)\b|\bas we speak\b|\bas i type\b", "now"),
        (r"\bno (1|body)\b", "no one"),
        (r"\bsewer slide\b|\bkermit suicide\b|\bself delet(?:e|ion)\b|\bcommit (?:die|unalive)\b", "suicide"),
        (r"\bkind of |\bsort of |\ba (?:little )?bit |\ball the time |\bat times ", ""),
        (r"\bf ?ing ", ""),
        (r"\b2 (?=die|kill|end|live|be)", "to "),
        (r"\bi m\b", "i am"),
        (r"\bi (?:dn|dnt|do nt|dun)\b", "i do not"),
        (r"\b(?:the )?sh (?=again|relapse|urges?|scars?)|\bs h (?=again|relapse|urges?)", "self harm "),
    )
)


def english(text: str) -> str:
    """The words as the English rules read them; full stops and commas are words of their own."""
    text = _plain(text)
    text = LAUGHTER.sub(" haha ", text)
    text = re.sub(r"\b(?:[a-z]\.){2,}[a-z]?(?![a-z])", lambda m: m[0].replace(".", ""), text)  # k.m.s.
    text = re.sub(r"(?<![a-z'])(?:[a-z][ _*-]){3,}[a-z](?![a-z'])", lambda m: re.sub(r"[ _*-]", "", m[0]), text)
    text = re.sub(r"\bs/h\b", "self harm", text)
    text = re.sub(r"(?<=[a-z0-9])-(?=[a-z0-9])", " ", text)
    # The possessive cannot be told from "is": it stays as a word "s".
    text = re.sub(r"\b(it|that|what|there|he|she|who|where|let|everyone|someone|nobody)'s\b", r"\1s", text)
    text = re.sub(r"'s\b", " s", text)
    text = re.sub(r"\bi'(?:d)\b", "i would", text)
    text = re.sub(r"\bi'll\b", "i will", text)
    text = text.replace("'", "").replace('"', " ").replace("&", " and ")
    tokens = re.findall(r"[a-z0-9]+(?:[*!|$@][a-z0-9*!|$@]*[a-z0-9])?|[.!?;\n…。！？；]+|[,:()—–/，、：-]+", text)
    spelled = " ".join(_spelled(tokens))
    for pattern, into in PHRASES:
        spelled = pattern.sub(into, spelled)
    return " ".join(_told(spelled.split(" ")))


def _plain(text: str) -> str:
    """Lower case, one kind of apostrophe and quote, no accents on letters, nothing invisible."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[’‘`´ʼ′]", "'", text)
    text = re.sub(r"[“”«»]", '"', text)
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) not in ("Cf", "Mn"))


def _spelled(tokens: list[str]) -> list[str]:
    words: list[str] = []
    for index, token in enumerate(tokens):
        if not token[0].isalnum():
            words.append("," if token[0] in ",:()—–/，、：-" else ".")
            continue
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        guess = GUESSED.get(token)
        if guess is not None and following in guess[1]:
            words.append(guess[0])
        else:
            words.append(re.sub(r"[^a-z0-9 ]+", " . ", _word(token)))
    return " ".join(words).split(" ")


def _word(token: str) -> str:
    token = CONTRACTIONS.get(token) or SPELLINGS.get(token) or token
    if not token.isalpha() and not token.isdigit() and " " not in token:
        token = _undisguised(token)
    if re.search(r"(.)\1\1", token):  # dieeee, killlll
        once = re.sub(r"(.)\1{2,}", r"\1", token)
        token = once if once in DISGUISED else re.sub(r"(.)\1{2,}", r"\1\1", token)
        token = SPELLINGS.get(token) or SPELLINGS.get(once) or token
    if len(token) >= 5 and token.isalpha() and token not in NEIGHBOURS and token not in MENDED:
        for word in MENDED:
            if token[0] == word[0] and _one_slip(token, word):
                return word
    return token


def _undisguised(token: str) -> str:
    read = token.translate(LEET)
    if read in DISGUISED or read in SPELLINGS:
        return SPELLINGS.get(read, read)
    if "*" in token and sum(c.isalpha() for c in token) >= 2:
        stars = re.compile(re.escape(read).replace(r"\*", "[a-z]"))
        return next((word for word in DISGUISED if stars.fullmatch(word)), token)
    return token


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter more, less, wrong or two swapped make a into b."""
    if abs(len(a) - len(b)) > 1:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    if len(a) == len(b):
        swapped = start + 1 < len(a) and a[start] == b[start + 1] and a[start + 1] == b[start]
        return a[start + 1 :] == b[start + 1 :] or (swapped and a[start + 2 :] == b[start + 2 :])
    return a[start + 1 :] == b[start:] if len(a) > len(b) else a[start:] == b[start + 1 :]


def _told(words: list[str]) -> list[str]:
    """The words without those that only colour."""
    kept = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word in FILLERS or (word == "just" and following not in DEEDS) or (word == "like" and following == ","):
            continue
        kept.append(word)
    return kept


TRADITIONAL = str.maketrans(
    "殺輕遺書樓藥絕沒還們誰讓個來開離這會過對麼別為後結應該覺點頭無從幾種麻煩傷殘腦壓憂鬱寧願氣斷終於給媽爺歲時間兒親愛槍門報復",
    "杀轻遗书楼药绝没还们谁让个来开离这会过对么别为后结应该觉点头无从几种麻烦伤残脑压忧郁宁愿气断终于给妈爷岁时间儿亲爱枪门报复",
)

NET_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"(?<![a-z0-9])zs(?![a-z0-9])|zi ?sha(?![a-z])|自 ?(?:sha|s|鲨|刹|沙|砂|💀)(?![a-z])", "自杀"),
        (r"紫砂(?![壶杯茶锅煲泥器陶花])|紫杀", "自杀"),
        (r"自 ?(?:can|c|惨|蚕)(?![a-z])|(?<![a-z0-9])zc(?![a-z0-9])", "自残"),
        (r"割 ?(?:月宛|wan|碗|w)(?![a-z])", "割腕"),
        (r"跳 ?(?:lou|l)(?![a-z])|tiao ?lou", "跳楼"),
        (r"轻 ?(?:sheng|牲|声)(?![a-z])", "轻生"),
        (r"遗 ?(?:shu|s)(?![a-z])", "遗书"),
        (r"(?<=[想去该要着就])(?:亖|si|s|鼠|嘎|噶|die)(?![a-z0-9标嘣])|(?<=[想去])4(?=[了。，]|$)", "死"),
        (r"亖", "死"),
        (r"(?<=[想要求])(?:重开|下线人生|下线)(?=了|[，。]|$|一?次?人生)", "死"),
        (r"噶了自己|嘎了自己|嘎自己|噶自己|嘎掉自己", "自杀"),
        (r"想kms|想unalive|想suicide", "想自杀"),
        (r"抑yu|yiyu", "抑郁"),
        (r"安mian药|安眠y", "安眠药"),
    )
)

# They colour a statement and change nothing in it. Only words of two characters and more: single ones are parts.
ZH_FILLERS = re.compile(
    r"真的|真心|其实|有时候|有时|偶尔|总是|老是|经常|时常|常常|一直|特别|非常|实在|简直|好像|似乎|感觉|觉得|可能|"
    r"或许|也许|大概|突然|忽然|已经|现在|真真|tm|tmd|他妈的|他妈|特么|妈的|居然|竟然|反正|确实|仿佛|甚至|完全|彻底|每天都|天天都"
)


def chinese(text: str) -> str:
    """The characters as the Chinese rules read them: 。 ends a sentence, ， is any smaller break."""
    text = _plain(text).translate(TRADITIONAL)
    text = re.sub(r"(?:[\u4e00-\u9fff] ){2,}[\u4e00-\u9fff](?![\u4e00-\u9fff])", lambda m: m[0].replace(" ", ""), text)
    text = re.sub(r"\[[^\[\]]{1,6}\]", "，", text)  # Weibo's emoticons
    text = LAUGHTER.sub("哈哈", text)
    text = re.sub(r"(?<=[\u4e00-\u9fff])[*·.。\-_ ](?=[杀残楼死腕书药])", "", text)  # 自*杀
    for pattern, into in NET_FORMS:
        text = pattern.sub(into, text)
    text = re.sub(r"[。.!?！？；;\n…~～]+", "。", text)
    text = re.sub(r"[,，、:：()（）—\-\"'《》【】\s]+", "，", text)
    text = re.sub(r"，*。，*", "。", text)
    return ZH_FILLERS.sub("", text)
