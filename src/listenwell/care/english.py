"""The signs of danger in English, as data.

Patterns read the text of `normal.english`: lower case, contractions written out, fillers gone, "." and "," as words.
`<name>` stands for a family of words, listed first. Every repetition has a small bound.
"""

from __future__ import annotations

from listenwell.care.rules import Guard, Hint, Language, Rule, Words

FAMILIES = {
    # Between "i" and what i want: no new subject and no negation, so the sentence stays the writer's own.
    "own": r"(?:(?!(?:not|never|no|nor|you|he|she|they|we|who|him|her|them|people|someone|i|to)\b)[a-z0-9]+ ){0,4}",
    "gap": r"(?:[a-z0-9]+ ){0,3}",
    "near": r"[^~]{0,60}",
    # Wanting and planning, before a verb. Not "have to" and "able to": they are said of duties.
    "want": r"(?:want|wanted|wanting|wish|wished|wishing|need|hope|hoping|plan|planning|planned|decided|ready|prepared|"
    r"intend|tempted|determined|long|longing|going|about|trying|try|tried|like|love|choose|chosen|itching|willing|"
    r"prefer|deserve|deserved|ought|meant|supposed|better|happy|time|desire|urge|urges|dying|close|back) to|"
    r"will|would|might|may|could|should|must|shall|let me|rather|gladly|happily",
    # The same before a noun or an -ing form.
    "think": r"(?:think|thinking|thought|thoughts|fantasi[sz]e|fantasi[sz]ing|fantasies|dream|dreaming|daydream\w*|"
    r"obsess\w*|talking|imagining|imagine|visuali[sz]\w*|idea|ideas|planning|plan|urge|urges|images) "
    r"(?:of|about|on)|consider|considering|considered|contemplat\w+|feel like|feeling like|felt like|planning|plan|"
    r"imagin\w+|researching|googling|end up|keep|start|started|picturing|on the verge of|close to|debating",
    "now": r"now|tonight|today|tomorrow|soon|this (?:morning|afternoon|evening|weekend|week|month)|next (?:week|month)|"
    r"at midnight|in the morning|in an hour|by (?:myself|tomorrow|morning|friday|sunday|monday|the end)|for good|"
    r"forever|once and for all|permanently|immediately|at last|before (?:christmas|my birthday)|any (?:day|time) now",
    "kin": r"(?:ex )?(?:husband|wife|boyfriend|girlfriend|partner|fiance|fiancee|ex)|(?:step ?)?(?:dad|father|mom|mother|"
    r"brother|sister|son)|daughter|uncle|aunt|cousin|roommate|flatmate|neighbou?rs?|best friend|friend|boss|coworker|"
    r"colleague|classmates?|teacher|landlord|grand(?:father|mother|pa|ma|son)|parents|family|kids?|child|children|baby|"
    r"manager|bully|bullies|pimp|dealer",
    "them": r"he|she|they|someone|(?:some|a|the|this|that|two|three) (?:guys?|man|men|stranger|intruder|woman|people)|"
    r"my (?:[a-z]+ )?<kin>",
    "is": r"is|s|are|keeps?|started|starts|will not stop|would not stop|was",
    "beat": r"hitting|beating|choking|strangling|punching|kicking|attacking|stabbing|raping|assaulting|slapping|"
    r"smothering|suffocating|burning|molesting|shooting|hurting|abusing|dragging",
    "beats": r"hits|beats|chokes|strangles|punches|kicks|rapes|slaps|hurts|abuses|burns|attacks",
    "did": r"hit|beat|choked|strangled|punched|kicked|stabbed|shot|slapped|attacked|raped|assaulted|burned|shoved|threw",
    "weapon": r"gun|knife|knives|rifle|pistol|shotgun|machete|axe|weapon|hammer|baseball bat|handgun|revolver",
    "drug": r"pills?|tablets?|tabs|capsules?|medication|medicine|antidepressants?|painkillers?|sleeping pills|tylenol|"
    r"acetaminophen|paracetamol|panadol|ibuprofen|advil|aspirin|xanax|valium|ambien|benadryl|prozac|zoloft|lithium|insulin|"
    r"oxy\w*|opioids|fentanyl|heroin|morphine|klonopin|ativan|seroquel|codeine|percocets?|vicodin|adderall|trazodone|"
    r"antihistamines|benzos",
    "poison": r"bleach|antifreeze|poison|pesticides?|rat poison|drain cleaner|weed ?killer|paraquat|detergent|cyanide|"
    r"insecticide",
    "lots": r"all|whole|entire|every|everything|too many|too much|so many|a lot of|lots of|bunch of|handfuls?|fistful|"
    r"bottles?|pack|packs|box|rest of|as many|more than|\d{2,}(?! (?:mg|ml|milligrams|minutes|years|days|hours))|fifteen|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|hundred|dozens?|double|triple|overdose of|stash|enough",
    "height": r"bridge|roof|rooftop|building|balcony|window|cliff|ledge|overpass|tower|parking garage|skyscraper|"
    r"(?:\w+ )?(?:floor|story|storey)|terrace|dam",
    "wheels": r"trains?|bus|buses|trucks?|cars?|traffic|tracks|subway|metro|tube|lorry|tram",
    "body": r"wrists?|throat|veins?|arteries|neck|arms?|forearms?|thighs?|legs?|skin|stomach|hips?",
    "place": r"here|there|with (?!this pain|it anymore)|in (?!(?:this|a) (?:world|body|pain|life|hell)|pain|agony|misery|fear)|"
    r"at |near|alone|on (?!this (?:earth|planet))|by |next|far|under |off |through |up to|for |to be|next to|without",
    "whom": r"him|her|them|someone|everyone|people|others|another person|a (?:person|kid|child|man|woman|stranger)|"
    r"my (?:[a-z]+ )?<kin>|th(?:at|is) (?:[a-z]+ )?(?:man|guy|bitch|bastard|woman|girl|boy|kid|asshole|teacher|cop|"
    r"person|motherfucker|son of a bitch)|th(?:ose|ese) [a-z]+|all of (?:them|you)|the (?:kids|guy|man|people|teacher|"
    r"neighbou?rs?|bastard|bitch|person|woman|driver|other)|his [a-z]+|strangers|as many",
    "rid": r"without me|if i (?:was|were|am|had|just|died|die|disappear|disappeared|vanished|left|never|did not|stopped|"
    r"killed|is)|when i am (?:gone|dead)|with me (?:gone|dead|out)|once i am (?:gone|dead)|after i am (?:gone|dead)|"
    r"i (?:was|were) (?:dead|gone|never born)",
}  # fmt: skip

WORDS = Words(FAMILIES, words=True)


def _rules(kind: str, directness: str, whom: str, patterns: dict[str, str]) -> tuple[Rule, ...]:
    return tuple(
        Rule(name, WORDS.compile(pattern), kind, directness, whom)  # type: ignore[arg-type]
        for name, pattern in patterns.items()
    )


# Cut out first. What remains of "this traffic is killing me, I want to die" is still read.
IDIOMS = tuple(
    WORDS.compile(pattern)
    for pattern in (
        # hyperbole with die and kill
        r"(?:die|died|dying|dead|die of|dying of|died of|death) (?:of |from |with |by )?(?:laughing|laughter|boredom|"
        r"embarrass\w+|shame|cringe|curiosity|cuteness|happiness|thirst|hunger|heat|excitement|jealousy|anticipation|"
        r"second ?hand|inside of laughter|fright|a heart attack|joy|anxiety waiting)",
        r"dying (?:to|for) (?!die|be dead|end)[a-z]+",
        r"(?:kill|killing|killed) (?:me|myself) (?:laughing|with laughter)|laugh\w* (?:[a-z]+ ){0,3}(?:dead|to death|i died)",
        r"(?:am|was|been|been|are|is|s) killing (?:me|myself) (?:at|in) (?:the gym|work|training|crossfit|school)",
        r"(?:am|was|been|are) killing myself (?:over|to|for|trying|working|studying|training|with|doing|on)",
        r"(?:bored|scared|tired|sick|worried|starved|frightened|freezing|embarrassed|spoiled|love\w*|worked|talked|"
        r"annoyed|done|beat(?:en)? the topic|stressed|tickled|bores?|starving|worry|worrying) (?:[a-z]+ ){0,2}to death",
        r"(?:would|could|might|will) (?:gladly |happily )?(?:kill|die|murder) for (?!me|him|being|what|good)[a-z]+",
        r"(?:could|would) (?:have )?(?:killed|died|kill|murder|murdered|strangled|strangle)(?! myself)",
        r"(?:to die for|dead(?: set| serious| tired| on my feet| end| weight| beat|line| ass| wrong| right| quiet)|drop dead|"
        r"over my dead body|till death|until death|until i die|till i die|til i die|before i die|cross my heart|"
        r"die hard|die trying|never say die|old habits die|the day i die|or die trying|do or die|wish me dead|"
        r"rather die than (?!live|liv|keep|go on|feel|wake|be here|face|continue|exist|spend|stay alive|go through))",
        r"rather (?:be dead|kill myself|be caught dead) than (?!live|keep|go on|feel|wake|be here|face|continue|exist|spend)",
        r"(?:almost|nearly) (?:died|killed me|choked)",
        r"want to die (?:in my sleep when i am old|old|happy|at home|in my own|peacefully at|doing what|surrounded|a hero|"
        r"with dignity|knowing)",
        r"(?:phone|laptop|battery|car|computer|plant|plants|tablet|engine|console|controller|watch|pc|tv) "
        r"(?:[a-z]+ ){0,3}(?:die|died|dies|dying|dead|to die|be dead)",
        # tech, games, animals, things
        r"kill(?:ed|ing|s)? (?:off )?(?:the |a |an |all |some |that |this |my |your |those |these |any |more |two |three |"
        r"\d+ )*(?:[a-z]+ )?(?:process(?:es)?|task|server|job|thread|session|daemon|tab|app|program|lights?|engine|"
        r"connection|command|switch|bugs?|spiders?|mosquitos?|mosquitoes|fly|flies|ants?|roach(?:es)?|cockroach(?:es)?|"
        r"wasps?|rats?|mouse|mice|snakes?|bees?|weeds?|germs|bacteria|virus|plants?|plant|succulents?|grass|fish|goldfish|"
        r"chickens?|deer|pigs?|turkey|cactus|time|mood|vibe|joke|boss|bosses|zombies?|dragons?|monsters?|enemy|enemies|"
        r"npcs?|villagers?|goblins?|aliens|demons|orcs?|guards?|bill|deal|project|romance|relationship|"
        r"appetite|pain|buzz|conversation|momentum|motivation|creativity|two birds|it)",
        r"kill(?:ed|ing)? (?:it|them|him|her) (?:in|on|at) (?:the )?(?:game|level|stage|audition|exam|boss|round|minecraft|"
        r"fortnite|interview|presentation|show)",
        r"(?:shoot|shot) (?:me|us|him|her|them|you|someone) (?:a |an |some |down|back|your|over)[a-z ]{0,20}",
        r"shoot(?:ing)? (?:for|up a|some|hoops|pool|the (?:shit|breeze)|photos|a (?:movie|video|film|wedding|scene))",
        r"(?:shoot|shot|shooting) (?:myself|yourself) in the foot",
        r"(?:cut|cutting) myself (?:some slack|a (?:break|slice|piece|bit)|off|out|short|down|loose|free|from)",
        r"(?:drown|drowning|drowned) myself in [a-z]+",
        r"(?:beat|beating|kick|kicking|bury|burying|hate|lose|losing) myself (?:up|in work|over)",
        r"(?:hang|hanging|hung) (?:myself )?(?:out|up|around|in there|on to|onto|with)",
        r"(?:overdos\w+|od) (?:on|of) (?:[a-z]+ )?(?:caffeine|coffee|sugar|chocolate|netflix|cuteness|nostalgia|tv|cheese|"
        r"carbs|cake|pizza|candy|christmas|memes|anime|love|ice cream|turkey|social media|vitamin|hopium|tiktok)",
        # violence that is none
        r"(?:kick|kicked|kicking|kicks|throw|threw|throwing|throws) (?:me|us|him|her|them) (?:out|off|from|a party|under)",
        r"(?:hit|hits|hitting) (?:me|us) (?:up|on|hard that|like a|that|with (?:a|the|his|her) (?:truth|question|news|bill|"
        r"look|fact|pillow|idea|car|bike|shopping))|hit(?:s|ting)? on me|hit me (?:in the feels|back)",
        r"beat(?:s|ing)? (?:me|us|him|her|them) (?:at|to|in|by|every time|on|fair|and won|\d)[a-z0-9 ]{0,12}",
        r"(?:shot|shoot|shooting) (?:me|us|him|her|them) (?:down|a)",
        r"(?:attack|attacked|attacking|attacks) (?:me|us|him|her) (?:online|on (?:twitter|facebook|reddit)|verbally|in the "
        r"comments|with (?:kisses|hugs|questions))",
        r"(?:hurt|hurting|hurts) (?:his|her|their|my|your|someone s|people s|him s) (?:feelings|ego|pride|chances|back|knee|"
        r"leg|foot|ankle|shoulder|wrist|neck|head|hand|arm|eyes|stomach)",
        # lives that go on
        r"(?:take|took|taking|get|getting|got|turn|turned|put|putting|live|living|start|change|changing|rebuild) my (?:own )?"
        r"life (?:back|in |into|to |for granted|seriously|as |savings|story|around|together|over|on |one)",
        r"end (?:my|the|this|our|it on|of) (?:day|week|shift|speech|sentence|subscription|contract|call|trip|turn|semester|"
        r"relationship|marriage|friendship|career|search|membership|lease|vacation|note|streak|engagement|email|season)",
        r"(?:one day|part|love|time|best day|trip|goal|purpose|lesson|dream|rest|fish|first time) (?:of|in) my life",
        r"suicide (?:squad|doors?|prevention|awareness|bomb\w*|hotline volunteer|mission|king|silence|boys|girls|watch list|"
        r"pass|rates?|statistics|squeeze|wings?|sprints?|drills?)",
        r"ran suicides|running suicides|career suicide|political suicide|social suicide|financial suicide",
        r"go to sleep (?:early|now|soon|on)|wake up (?:early|at|before|for|to (?:go|catch|pee|my alarm|the|a)|him|her|"
        r"the|my|you|in time|late|from (?:this|that|the) (?:dream|beautiful|nap))",
        r"disappear (?:for (?:a|the) (?:day|week|weekend|while|few|couple)|to (?:a|an|the|some)|into (?:a|my|the) (?:book|"
        r"blanket|bed|woods|mountains|novel|forest|sofa)|on (?:a )?(?:vacation|holiday)|under my)",
        r"(?:am|was|s|is|are|were) (?:not )?better off (?:financially|now|than)",
        r"kill me now|(?:this|that|it|which) (?:is|s|was) killing me",
        r"\d+(?:[., ]+\d+)* ?kms|(?:how many|few|many|some|hundred|thousand|per|several|in|the|of|more|less) kms|"
        r"kms (?:away|per|an hour|a day|from|to|on (?:it|the)|of|for a|in (?:a|one|two|\d)|run|long|left|north|south|east|west)",
    )
)  # fmt: skip

EMERGENCIES = (
    # The writer's life is in danger now.
    *_rules("danger", "direct", "self", {
        # "i took the whole bottle of tylenol", "ive swallowed like 40 pills"
        "overdose-taken": r"i <own>(?:just |already )?(?:took|taken|swallowed|downed|ate|eaten|ingested|popped|drank|"
        r"chugged|emptied|finished) <gap><lots> (?:[a-z0-9]+ ){0,5}<drug>",
        "overdose-done": r"i <own>(?:just |already )?(?:overdosed|overdosing|took (?:an|my) overdose|taken an overdose)|"
        r"i <own>(?:took|taken|swallowed) (?:it all|them all|all of (?:them|it))|(?:the )?(?:pills|<drug>) (?:are|is) (?:starting to "
        r"work|kicking in|taking effect)|i <own>(?:just )(?:took|swallowed) (?:the|my|those|these) <drug> "
        r"<near>(?:die|dying|over|goodbye|scared|regret|help|end|sorry)",
        "poison-taken": r"i <own>(?:just |already )?(?:drank|swallowed|drunk|ingested|chugged|downed) (?:[a-z0-9]+ ){0,5}"
        r"<poison>",
        # "i cut too deep and it wont stop bleeding"
        "bleeding": r"(?:cut|slit|slashed|stabbed|wrists?|too deep)\b<near>\b(?:bleeding|blood)\b(?=<near>(?:stop|everywhere|"
        r"a lot|out|heavily|lots|much|all over|death))|i am bleeding (?:out|to death|heavily|everywhere)",
        # "my husband is beating me", "he wont stop hitting us"
        "violence-now": r"<them> (?:[a-z]+ )?<is> (?:[a-z]+ ){0,2}?<beat> (?:up )?(?:on )?(?:me|us|my (?:[a-z]+ )?<kin>)",
        "violence-just": r"<them> (?:has )?just (?:<did>|held|pulled|put|pushed|grabbed|tried) (?:[a-z]+ ){0,3}?(?:me|us|my (?:neck|"
        r"throat|face|hair|arm|<kin>))|<them> <did> (?:me|us|my face|my head) (?:[a-z0-9]+ ){0,6}?(?:again|tonight|now|"
        r"this morning|last night|an hour ago|minutes ago|today)",
        "violence-often": r"<them> (?:[a-z]+ )?<beats> (?:me|us)",
        # "he is pointing a gun at me", "she came at me with a knife", "he is outside my door with a bat"
        "weapon-at-me": r"<them> (?:[a-z]+ ){0,6}?<weapon> (?:[a-z]+ ){0,3}?(?:me|us|my (?:head|throat|face|neck|door|house|"
        r"room|<kin>))|<them> (?:[a-z]+ ){0,4}?(?:me|us|door|house|outside) (?:[a-z]+ ){0,3}?with a <weapon>|"
        r"<them> (?:has|is holding|s holding|have|got) (?:a|his|her|the) <weapon> (?:and|,) <near>(?:i am|me|us|scared|hiding|help|"
        r"kill|shoot|screaming|threaten)",
        "intruder": r"(?:someone|they|he|she|a man|some guy|two men|a stranger|my ex) (?:<is>) (?:trying to (?:break|get|kick)|breaking|"
        r"kicking|banging|smashing|pounding)(?: [a-z]+){0,3} (?:in|into|down|on|through)\b(?= (?:my|the|our|\.|,|and|now|here)|$)|"
        r"(?:someone|a man|some guy|a stranger|an intruder|burglar|burglars|people) (?:is|s|are) (?:in|inside|outside) (?:my|our|the) "
        r"(?:house|home|apartment|flat|room|door|window)|active shooter|there is (?:a|an) (?:shooter|intruder|gunman)|"
        r"someone (?:is|s) shooting",
        "hiding": r"i am (?:hiding|locked|barricaded|trapped|tied) <near>\b(?:from (?:him|her|them|my)|(?:he|she|they|"
        r"husband|boyfriend|dad|father|ex|stepdad) (?:is|are|s|has|will|locked|keeps))",
        "captive": r"(?:he|she|they|my (?:ex )?(?:husband|boyfriend|partner|wife|ex|pimp)) (?:has |have )?(?:will not let me (?:leave|out)|"
        r"locked me (?:in|inside|up)|is holding me|are holding me|kidnapped me|tied me|is keeping me locked|took me against)|"
        r"i am being (?:held|kidnapped|trafficked|attacked|beaten|raped|assaulted|stalked|followed home|abused)|"
        r"i (?:was |have been |am )?(?:just )?(?:been )?(?:raped|kidnapped|stabbed|shot)(?= (?:now|tonight|today|just|an hour|"
        r"minutes|this))",
        # "he said he would kill me", "my ex is trying to kill me"; "my boss will kill me" needs fear: see the guards
        "threat-said": r"<them> (?:[a-z]+ )?(?:threatened|threatens|is threatening|s threatening|is trying|s trying|tried|wants|swore|"
        r"promised|keeps threatening|keeps trying|is coming|s coming|vowed|(?:said|says|keeps saying|told me|texted|texted me) "
        r"(?:that )?(?:he|she|they) (?:will|would|is going|are going|was going|were going|wants|is coming)) "
        r"(?:to )?(?:[a-z]+ ){0,2}?(?:kill|murder|shoot|stab|strangle|rape|burn|hurt|beat) (?:me|us|my (?:<kin>))",
        "threat-feared": r"(?:afraid|scared|terrified|fear|worried|know|think|sure|convinced)(?: that)? (?:<them>) (?:is going to|are going to|"
        r"will|might|would|could|may|is about to) (?:[a-z]+ ){0,2}?(?:kill|murder|shoot|stab|hurt|hit|beat|rape) (?:me|us|my (?:<kin>))",
        "threat": r"<them> (?:is going to|are going to|s going to|will|is about to) (?:kill|murder|shoot|stab|rape) (?:me|us)",
        "call-help": r"(?:someone|can you|could you|help|need you to|need someone to) call (?:the )?(?:police|cops|911|999|112|"
        r"an ambulance|ambulance)|i need (?:an ambulance|the police|police)|(?:call|send) (?:an ambulance|the police) now",
    }),
    # Somebody else is.
    *_rules("danger", "direct", "other", {
        # "im going to kill him", "i want to stab my stepdad", "i keep thinking about hurting my baby"
        "intent-kill": r"i <own>(?:<want>|swear i will|have to) (?:[a-z]+ )?(?:kill|murder|stab|shoot|strangle|choke|poison|"
        r"slaughter|execute|behead|torture|attack|hurt|harm|cripple|drown|bomb|smother|suffocate) <whom>",
        "intent-thought": r"(?:i|my) <own>(?:<think>|scared of|afraid of|terrified of|voices [a-z]+ [a-z]+) (?:[a-z]+ )?(?:killing|murdering|stabbing|"
        r"shooting|strangling|choking|poisoning|hurting|harming|attacking|drowning|smothering|shaking|suffocating) <whom>",
        "intent-fear": r"i <own>(?:afraid|scared|terrified|worried|fear)(?: that)? i (?:will|might|am going to|would|could|may) (?:[a-z]+ )?"
        r"(?:hurt|harm|kill|stab|shake|drown|smother) <whom>",
        # "i will put a bullet in his head", "im going to burn their house down"
        "intent-means": r"i <own>(?:<want>|<think>) (?:[a-z]+ )?(?:(?:slit|slitting|cut) (?:his|her|their) throats?|(?:put|putting) a bullet in "
        r"(?:his|her|their|him|them)|(?:smash|smashing|bash|bashing) (?:his|her|their) (?:head|skull|face) in|"
        r"(?:beat|beating) <whom> (?:to death|until|to a pulp|with a)|(?:run|running) <whom> (?:over|down)|"
        r"(?:burn|burning|set) (?:down )?(?:his|her|their|the|my) (?:[a-z]+ )?(?:house|home|place|school|office|building|apartment|car)"
        r"(?: [a-z]+)? ?(?:down|on fire)?|(?:shoot|shooting|blow|blowing|bomb) up (?:the|my|a|this|that|his|her) [a-z]+|"
        r"shoot(?:ing)? everyone|(?:drive|driving|plow|ram) (?:[a-z]+ )*?(?:into|through) (?:a|the) crowd|"
        r"take (?:him|her|them|everyone|people|some of them|as many (?:people )?(?:as i can )?) (?:out )?with me)",
        # "i have a gun and im going to his house"
        "intent-armed": r"i <own>(?:have|got|bought|bringing|bring|taking|take|getting|get|loaded|grabbed|packed|holding|sharpened) "
        r"(?:a |my |the |his |dad s |my dad s )?(?:[a-z]+ )?<weapon> (?:[a-z]+ ){0,6}?(?:to school|to work|to (?:his|her|their)|for (?:him|her|them)|"
        r"to class|(?:going|driving|heading|waiting|am coming) [a-z]+ (?:his|her|their|him|them|school|work)|to (?:use|kill|shoot|stab|hurt)|"
        r"(?:he|she|they) (?:will|is going|are going|deserve|deserves))",
        "intent-revenge": r"(?:they|he|she|everyone|all of them) (?:will|is going to|are going to|deserves? to) (?:all )?(?:die|pay with|bleed|be dead) "
        r"(?:[a-z]+ ){0,3}?(?:tonight|tomorrow|by|my hands?|me|for what|at school|when i|soon)|i <own>want (?:him|her|them|everyone) dead",
        # "my friend just took a bottle of pills", "she is not breathing"
        "other-now": r"<them> (?:has )?just (?:took|swallowed|drank|overdosed|tried to (?:kill|hang)|slit|jumped|shot|stabbed|hanged|"
        r"collapsed|cut (?:his|her|their) (?:wrist|wrists|throat))|<them> (?:is|s|are) (?:not (?:breathing|waking up|"
        r"responding)|overdosing|bleeding out|having a seizure)|<them> (?:has )?(?:overdosed|took (?:[a-z0-9]+ ){0,5}pills) "
        r"<near>(?:not (?:breathing|wak|respond)|will not wake|unconscious|passed out|what do i do|what should i do|help|now)",
        "other-suicide-now": r"<them> (?:is|s|are) (?:about to|going to|threatening to|trying to|on the (?:roof|ledge|bridge)|standing on)"
        r"(?: [a-z]+){0,3}? ?(?:kill|hang|shoot|hurt|jump|cut|end)?(?: [a-z]+){0,3}?<near>(?:\bnow\b|tonight|what do i do|what should i do|"
        r"on the roof|on the bridge|on the ledge|with a (?:gun|knife))",
        "other-violence": r"<them> (?:is|s|are) (?:[a-z]+ ){0,2}?(?:hitting|beating|choking|strangling|stabbing|attacking|raping|"
        r"shooting) (?:up )?(?:his|her|their|him|someone|the|a|my) [a-z]+",
    }),
)  # fmt: skip

DIRECT = _rules("self-harm", "direct", "self", {
    # any verb of killing upon myself: "thinking of offing myself", "i will hang myself", "better to shoot myself"
    "kill-self": r"(?:kill|killing|killed|unalive|murder|murdering|hang|hanging|hanged|hung|shoot|shooting|shot|drown|drowning|poison|"
    r"poisoning|stab|stabbing|strangle|strangling|suffocate|suffocating|electrocute|gas|gassing|execute|delete|deleting|necking|"
    r"roping|end|ending|terminate|terminating|finish|finishing|euthani[sz]e|slaughter|destroy|annihilate|behead|immolate) (?:off )?myself|"
    r"(?:to|will|would|should|might|could|i|of|about) (?:off|top|topping|rope|neck|game end|do) myself(?! in (?:the|a|my))(?! (?:a|some|that|this))|"
    r"(?:to|of|about) (?:do|doing) (?:away with myself|myself in)|(?:bleed|starve|starving|drink|drinking|freeze|burn|burning) (?:myself )?to death|"
    r"put (?:myself down|me out of my misery)|putting myself (?:down|out of my misery)",
    # "end my life", "take my own life", "put an end to my existence"
    "end-life": r"(?:end|ending|ended|take|taking|took|taken|finish|finishing|terminat\w+|cut short|give up|leave|quit|exit|check out of|checking out of|"
    r"get rid of|opt out of|opting out of|sign off from) (?:my|this) (?:own |miserable |stupid |pathetic |worthless |sad |painful |awful |whole |shitty )*"
    r"(?:life|existence|days|misery|story)(?! (?:with|together|as a))|(?:put|putting) an end to (?:my|it all|everything|all of|this life|myself|me)",
    # "end it all", "end it tonight"
    "end-it": r"(?:end|ending|ended|finish|finishing|stop) (?:it all|all of (?:it|this)|everything|all this|(?:it|things|this) (?:<now>))|"
    r"i <own>(?:<want>|<think>) (?:to )?(?:end|ending) (?:it|things|this)(?= \.| ,|$| because| and | before| but | i )",
    "die-want": r"(?:i|part of me|half of me|all i|my (?:brain|mind|head|heart|body|soul)) <own>(?:<want>) (?:[a-z]+ )?(?:die|be dead|not be alive|not exist|"
    r"stop existing|stop living|stop being alive|stop breathing|cease to exist|not live|be unalive|unalive|be six feet under|be killed|get killed|drop dead)"
    r"(?! (?:on (?:this|that) hill|alone|inside|down|for (?!good)))|"
    r"(?:makes?|made|making|leaves?) me (?:feel like i )?want(?:ing)? to (?:die|be dead|stop living)|(?:^|[.,] |and |but )(?:i )?(?:want|need|ready|going|time) to (?:unalive|die)"
    r"(?= (?:now|tonight|bad|anymore|already|today|so|more|rn)| [.,]|$)|"
    r"(?:urge|desire|need|wish|longing|wanting|wants? me) to (?:die|be dead)|can not (?:help|stop) wanting to die|all i (?:want|think) (?:is )?(?:to die|dying|about dying)",
    "die-going": r"i (?:am going to|will|am about to|am gonna) (?:die|be dead|be gone|unalive) (?:tonight|by my own|by (?:tomorrow|morning|the time|the morning|sunday|monday|"
    r"friday|midnight|the weekend|my own)|before (?:tomorrow|morning))|i (?:will|am going to) die (?:today|tonight|and (?:no one|it will|you))",
    # "i wish i was dead", "hope i die in my sleep", "i would be better off dead"
    "die-wish": r"(?:i|wish|hope|pray|hoping|praying|wishing|god|if only|want) (?:that |to god |every [a-z]+ |for )*i (?:was|were|could|would|had|will|can|am|be|just)? ?(?:[a-z]+ ){0,2}?(?:dead|die|died|"
    r"not alive|not exist|killed|unalive|stop existing|stop breathing|never wake up|not wake up)(?! (?:laughing|inside|of|before|down|young|old|my))|"
    r"(?:better|happier|easier) (?:off )?(?:dead|to be dead|to die|if i (?:was dead|were dead|died|die|am dead|killed))|"
    r"(?:let|leave|want you to let) me (?:to )?(?:die|kill|end)(?! of)|i should (?:be dead|die|not be alive|kill)|i deserve (?:to die|death|to be dead)|"
    r"(?:want|crave|craving|wishing for|wish for|beg for|begging for|pray for|praying for|welcome|long for|longing for|waiting for|looking forward to|ready for) "
    r"(?:my own |my )?death|i <own>(?:beg|begging|praying|pray) to die|kill me (?:already|for real|tonight|please i)|i <own>want (?:someone|you|god|him|her|them|anyone) to kill me|"
    r"(?:feel|feeling|felt) like (?:dying|i want to die|i (?:should|need to|have to) die)(?! of)|death is (?:my|the) only|only (?:death|dying)|"
    r"i <own>(?:<think>) (?:dying|my own death|being dead|death) (?:all|every|constantly|a lot|a relief|more|and i want)",
    # "i do not want to live anymore"
    "live-not": r"i <own>(?:do|did|can|will|could|would|am|have) not (?:[a-z]+ ){0,3}?(?:want|wish|deserve|care|plan|intend|planning|wanting|feel like|going) (?:to )?(?:be alive|live|living|exist|existing|"
    r"be living|stay alive|survive|be around|keep (?:living|existing)|continue (?:living|to live|existing)|go on (?:living|existing)|be on this (?:earth|planet)|be in this world|"
    r"live (?:like this|anymore|this life)|carry on living|to live|being alive)(?! <place>)|(?:never|not) wanted to (?:live|be alive|exist)(?! <place>)|"
    r"(?:do not|dont) (?:want|deserve) to (?:live|be alive|exist|stay alive)(?! <place>)|(?:no|lost|losing|lack) (?:[a-z]+ ){0,3}?(?:desire|will|wish|want|motivation|intention) (?:left )?(?:to live|to be alive|to stay alive|to exist|to go on living)|"
    r"i (?:refuse|am unable|am too tired|am tired of trying) to (?:live|stay alive)(?! <place>)|i can not live anymore",
    "suicidal": r"i <own>(?:am|feel|feeling|been|was|get|getting|got|became|become|felt|being) (?:(?!not|never|no|anti|if|whether)[a-z]+ ){0,3}?suicidal|(?:^|[.,] )(?:and )?(?:feeling |so )?suicidal(?= (?:again|now|tonight|and|af|thoughts|[.,])|$)|"
    r"(?:i|my|me|having|have|had|these|those|with|constant|been|get|getting|of) (?:(?!no |not |never |his |her |their )[a-z]+ ){0,4}?suicid(?:al|e) (?:thoughts?|ideations?|feelings?|urges?|tendenc\w+|ideas?|impulses?|plan|plans|intent|attempts?)|"
    r"suicidal (?:thoughts?|urges?|ideation|feelings) (?:are|is|keep|came|come|again|every|have|getting|will not|back)|i am (?:a )?suicid(?:e|al) risk",
    "suicide": r"(?:i|my|me) (?:(?!(?:not|never|no|he|she|they|his|her|their|him|them|who|lost|brother|sister|dad|father|mom|mother|friend|son|daughter|uncle|cousin|about)\b)[a-z]+ ){0,5}?(?:<think>|commit|committing|committed|attempt|attempted|attempting|"
    r"try|trying|tried|want|considering|thoughts of|option is|answer is|way out is|turn to|ready for|resort to|choose|about) (?:[a-z]+ )?suicide(?! (?:of|in|rates|note|prevention|awareness))|suicide (?:is|seems|feels|sounds|looks) (?:[a-z]+ ){0,3}?(?:only|best|easiest|option|answer|solution|way|tempting|appealing|good)|"
    r"my (?:own )?suicide (?!prevention)|(?:my|a|the|written|wrote|writing) (?:suicide|goodbye) (?:note|letter)s?(?= (?:is|are|ready|for|tonight|now|already|and|to|is|[.,])|$)|(?:wrote|written|writing|write|finished) (?:[a-z]+ ){0,3}?suicide (?:note|letter)|suicide plan|"
    r"(?:thoughts|thinking) (?:of|about) (?:killing|ending|hurting|harming|cutting|hanging|taking my|suicide)|commit(?:ting)? suicide (?:tonight|now|tomorrow|today|soon|because|if)",
    # methods, wanted or feared by the writer
    "jump": r"(?:i|me|myself|to) (?:(?!(?:not|never|you|he|she|they|we|him|her)\b)[a-z]+ ){0,6}?(?:jump|jumping|leap|leaping|throw myself|throwing myself|fling myself|hurl myself|hurling myself|yeet myself|yeeting myself|step|stepping|walk|walking|run|running|lie down|lay down|dive|diving|drop|fall) "
    r"(?:off|from|out of|out|in front of|infront of|under|onto|into|on|over|before) (?:of )?(?:a |an |the |my |this |that |some |oncoming |incoming |moving |speeding |busy |our |one of )*(?:[a-z]+ ){0,2}?(?:<height>|<wheels>)(?! (?:station|stop|shop|for|to (?:work|get|the|school)|dealer))",
    "jump-just": r"(?:i|to) <own>(?:want|going|ready|about|think\w*|thought|feel|urge|could|should|might|will|need) (?:to |of |about |like )?(?:just )?(?:jump|jumping)(?= [.,]|$| and (?:end|die|be|never|get)| off| because| now| tonight| down and)",
    "drive": r"(?:i|me) (?:(?!(?:not|never|you|he|she|they|we)\b)[a-z]+ ){0,6}?(?:want|wanted|think\w*|thought|thoughts|feel|urge|urges|tempted|imagine|imagining|could|should|might|will|going|keep|dream|fantasi[sz]\w+|makes me) (?:[a-z]+ ){0,4}?(?:drive|driving|crash|crashing|swerve|swerving|steer|steering|wreck|wrecking|run|running|veer|veering) "
    r"(?:my |the |this )?(?:car |truck |bike |motorcycle |van |myself )?(?:straight |right |full speed |head on )?(?:into|off|over|under) (?:a |an |the |oncoming |some |that |incoming )*(?:[a-z]+ )?(?:tree|wall|bridge|cliff|pole|truck|traffic|river|lake|barrier|median|ditch|guardrail|road|ocean|car|lane)",
    "wrists": r"(?:slit|slash|slashed|slitting|slashing|cut|cutting|slice|slicing|sliced|carve|carving|open|opening|opened|burn|burning|burned|burnt) (?:open |up |into )?my (?:own )?(?:left |right )?<body>",
    "gun-head": r"(?:gun|pistol|bullet|barrel|shotgun|rifle|knife|blade|razor|trigger|revolver|handgun) (?:[a-z]+ ){0,4}?(?:to|in|into|through|against|at|on|up to|inside) my (?:own )?(?:head|mouth|temple|brain|brains|skull|throat|wrists?|heart|chest|neck|veins?|skin|arms?|thighs?)|"
    r"(?:blow|blowing|blew) my (?:own |fucking )?(?:brains?|head) (?:out|off)|eat(?:ing)? a bullet|(?:a bullet|bullet) in(?:to)? (?:me|myself)|i <own>(?:<want>|close to) (?:pull|pulling) the trigger(?! on)|(?:stab|stabbing) (?:a|the|this) knife",
    "overdose-plan": r"(?:i|to|of|about) <own>(?:<want>|<think>) (?:overdose|overdosing)(?! on (?:coffee|caffeine|sugar))|(?:thinking|thoughts|thought) (?:of|about) (?:overdose|overdosing)|(?:want|going|plan\w*|tempted|about|ready|decided) to (?:take|swallow|down|eat|drink) (?:[a-z0-9]+ ){0,3}?<lots> (?:[a-z0-9]+ ){0,4}?<drug>|"
    r"(?:will|should|could|might|of|about) (?:take|taking|swallow|swallowing|down|downing|eat) (?:[a-z0-9]+ ){0,2}?(?:all|whole|entire|every|bottle|handful|too many|enough) (?:[a-z0-9]+ ){0,4}?<drug>|(?:want|going|makes me want|ready|about|plan\w*|will|thinking of|thinking about) (?:to )?(?:drink|drinking|swallow|swallowing) (?:[a-z]+ ){0,2}<poison>|"
    r"enough <drug> to (?:kill|end|die|do it|never)",
    "noose": r"(?:noose|rope|belt|cord) (?:[a-z]+ ){0,3}?(?:around|round) my (?:own )?neck|(?:tie|tied|tying|made|make|making|bought|buy|have|got|prepared|hung|found) (?:[a-z]+ ){0,2}?noose|i <own>(?:want|going|should|might|will|need|about|ready|time) (?:to )?(?:rope|hang)(?= [.,]|$| now| tonight| because| soon)|"
    r"hang(?:ing)? (?:from|by) (?:a|the) (?:rope|ceiling|fan|rafters|tree|noose)",
    # net slang for it
    "slang": r"kms|(?:going to|want to|will|ready to|time to|plan to|should|about to|finally|to|i) ctb|ctb (?:tonight|soon|tomorrow|method|date|this)|catch the bus (?:tonight )?(?:and (?:never|be at peace)|for good|to the other side)|(?:i|me|myself) <own>unalive|unalive (?:me|myself)|(?:want|going|ready|about|need|thinking|plan\w*|thoughts|might|should) "
    r"(?:to|of|about)? ?(?:be )?unalive|end me (?:already|now|please)|logging off (?:life|forever|permanently)|log off (?:life|forever|permanently)|delete (?:me|myself) from|i <own>(?:want|going) to commit(?= [.,]|$| and)",
    # self-injury without the wish to die
    "harm-self": r"(?:hurt|hurting|hurts|harm|harming|harmed|injure|injuring|burn|burning|burned|burnt|cut|cutting|cuts|mutilat\w+|maim\w*|disfigure) myself|"
    r"(?:want|wanting|need|urge|urges|going|keep|keeps|started|start|been|feel like|deserve|try|trying|makes me|made me|love|like|stop|thinking about|thoughts of|wish i could) (?:to )?(?:hit|hitting|punish|punishing|scratch|scratching|bite|biting|choke|choking|starve|starving|torture|torturing|punch|punching|bruise|bruising|stab|stabbing) myself",
    "self-harm": r"(?:i|my|me) (?:(?!(?:not|never|no|he|she|they|his|her|their|who)\b)[a-z]+ ){0,6}?self (?:harm\w*|injur\w*|mutilat\w*)(?! (?:awareness|prevention|training|survivor))|self (?:harm|harming|harmed) (?:again|relapse|urges?|tonight|every|today|to cope|is the only|makes me)|(?:urge|urges|urges are|want|wanting|need|relapsed|relapse|relapsing|back) (?:to|with|on|into|and) (?:cut|cutting|self harm\w*|hurting|burning|burn)"
    r"(?= (?:again|myself|my|so|is|are|today|tonight|now|[.,])|$)|i <own>(?:started|been|keep|am|back to|can not stop|restarted|resumed|went back to) (?:started )?cutting(?= (?:again|to|every|since|and|because|deeper|more|for (?:months|weeks|years)|at night|when|[.,])|$)|"
    r"i cut (?:again|tonight|last night|deeper|too deep|so deep|to (?:feel|cope|deal)|whenever|when i (?:am|get|feel)|because i)|fresh cuts on my|new (?:cuts|scars) on my (?:arms?|wrists?|legs?|thighs?)|(?:razor|blade|razors|blades) (?:[a-z]+ ){0,3}?(?:relief|calms?|helps|friend)",
    "voices": r"voices? (?:[a-z]+ ){0,4}?(?:tell|tells|telling|say|says|saying|want|wants|order|ordering|command|scream\w*) (?:[a-z]+ ){0,3}?(?:to )?(?:kill|hurt|die|jump|end|do it|harm|cut|stab)|i am a danger to (?:myself|others|everyone)|danger to myself",
    "attempt": r"(?:i|my) <own>(?:tried|attempted|attempting) to (?:kill|hang|drown|end|overdose|take my|die|poison|unalive|do it (?:again|last night))(?! (?:it|time|him|her|them))|my (?:[a-z]+ )?(?:suicide )?attempt (?:failed|last|did not)|failed (?:suicide )?attempt|i <own>almost (?:did it|jumped|killed myself|ended)|attempted last (?:night|week)",
})  # fmt: skip

INDIRECT = (
    *_rules("self-harm", "indirect", "self", {
        # "everyone would be better off without me", "my kids will be happier when im gone"
        "burden": r"(?:better|happier|easier|fine|relieved|ok|okay|best|glad|lighter|improve\w*|simpler|good|nicer|peaceful|thank me) (?:[a-z]+ ){0,5}?(?:<rid>)|(?:<rid>) (?:[a-z]+ ){0,3}?, ?(?:[a-z]+ ){0,3}?would (?:[a-z]+ ){0,4}?(?:better|happier|easier|fine|relieved|glad)|"
        r"without me (?:[a-z]+ ){0,2}?(?:everyone|they|everything|my family|my kids|the world|you|people) (?:would|will)|(?:would|will) be (?:better|happier|relieved|free) once i",
        "not-missed": r"(?:no one|anyone|who|not a soul|not one person|nothing|nobody|not|world|everyone|anybody|they) (?:[a-z]+ ){0,3}?(?:miss|notice|care|cry|mourn|remember|sad|come|find|matter|difference|bother|grieve|affected|bothered|mind|even know|realize|forget) (?:me )?(?:[a-z]+ ){0,4}?(?:if|when|that|once|about) i (?:was|were|am|had|just|would)? ?(?:[a-z]+ ){0,2}?(?:die|died|dead|gone|disappear\w*|vanish\w*|kill\w*|left this|never (?:came|existed|been|woke)|stopped (?:existing|breathing)|not here|were not|was not (?:here|around|alive)|passed|dropped dead|end\w*)|"
        r"if i (?:was|were|am|just|did|had)? ?(?:[a-z]+ ){0,2}?(?:die|died|dead|gone|disappeared|vanished|killed|not wake|never woke|dropped dead|not here)\b<near>(?:no one|anyone|who|they|nobody) (?:[a-z]+ ){0,2}?(?:miss|notice|care|cry|mourn|know|remember|come|find)|(?:come|coming|cry|be anyone|anyone) (?:[a-z]+ ){0,3}?(?:at|to) my funeral",
        "a-burden": r"i <own>(?:am|feel like|feel|been|become) (?:[a-z]+ ){0,4}?(?:burden|waste of (?:space|oxygen|air|life|breath)) (?:to|on|for) (?:everyone|my (?:family|kids|parents|wife|husband|mom|children|loved)|them all|all|the people|people)|waste of (?:space|oxygen|air)(?= [.,]|$| and| who| that)|(?:tired|sick) of being a burden|(?:will not|do not want to) be a burden (?:[a-z]+ )?(?:anymore|any|for much|to)",
        # "nothing left to live for", "whats the point of going on"
        "no-reason": r"(?:no|any|a|one|not|lost my|nothing|little|good|single) (?:[a-z]+ ){0,2}?(?:reason|reasons|point|purpose|sense|use|meaning) (?:left |for me |anymore |to me )?(?:to |in |of |for )?(?:live|living|be alive|being alive|go on|going on|keep going|keep living|be here|being here|stay|stay alive|staying alive|exist|existing|carry on|carrying on|continue|continuing|wake up|waking up|to live|my life|my existence|me being|life|keep (?:trying|fighting|breathing)|get up|living anymore)(?! (?:here|in this (?:job|town|relationship|city)|with|at|together|early))|nothing (?:left )?(?:to live for|worth living|worth staying|left for me|keeping me here|keeps me here|to keep me here|holding me here)|"
        r"(?:what is|see|seeing|is there|find|where is|there is no|not see) (?:the |a |any |no )?(?:point|purpose|reason|use|sense) (?:of|in|to|for) (?:life|living|being (?:alive|here)|going on|continuing|staying|existing|keep\w* (?:going|living)|carrying on|me|my life|waking up|it all|live|go on|fighting)|why (?:should|do|would|am|keep|bother) (?:i )?(?:[a-z]+ ){0,2}?(?:live|living|alive|exist|existing|keep going|go on|going on|stay alive|staying alive|wake up)(?! (?:here|in|with|at|early))|why (?:am i|i am) (?:here|alive|breathing|on this (?:earth|planet))|why was i (?:even )?born",
        "not-worth": r"(?:life|living|it|this|being alive) (?:is|s|was|feels?|seems|does not feel|does not seem) (?:[a-z]+ ){0,2}?(?:not|never|no longer|hardly|barely)? ?(?:[a-z]+ ){0,2}?worth (?:living|going on|it anymore|waking up for|staying for|fighting for anymore)|(?:not|nothing|hardly|isnt) worth (?:living|being alive|staying alive|going on)|(?:my )?life (?:has|holds|had) (?:no|lost (?:all|its|any)) (?:[a-z]+ )?(?:meaning|purpose|point|value|worth)|(?:life|living|existence|existing) is (?:[a-z]+ ){0,2}?(?:pointless|meaningless|too (?:painful|hard|much)|unbearable|torture|hell|a curse|not for me|a burden|exhausting)(?: to (?:go on|live|continue))?",
        "no-future": r"(?:no|any|a|not see|can not see|can not imagine|see) (?:[a-z]+ ){0,2}?(?:future) (?:for (?:me|myself)|ahead|with me in it|where i (?:am|exist)|left)|(?:not|never|can not) (?:[a-z]+ ){0,3}?(?:see|picture|imagine|seeing|think|thought|expect|plan\w*) (?:[a-z]+ ){0,3}?(?:myself|being|living|i would|i will|to be|to) (?:[a-z]+ ){0,2}?(?:next (?:year|month|week)|(?:past|beyond|after|until|to see|reach|make it to|making it to|living past|alive (?:past|by|at|in|next|much)|be around|being around|being alive|to see|turn|turning|old age)\b)|"
        r"(?:there is )?no tomorrow for me|(?:will|would) not (?:[a-z]+ ){0,2}?(?:be (?:here|alive|around)|make it|live|last|see|exist)(?: (?:[a-z]+ ){0,3}?(?:tomorrow|much longer|next (?:week|month|year|christmas|birthday|summer)|long|anymore|to (?:see|find|know|watch)|by (?:then|the|next|christmas|monday|morning|tomorrow)|when you|past|until|through the (?:night|week|weekend)|(?:my|another|the) (?:birthday|year|morning|sunrise|christmas|night|end of)))(?! (?:meeting|class|deadline|game|party|at work))",
        # "i cant go on", "i cant keep living like this"
        "go-on": r"(?:can|could|do|will|would) not (?:[a-z]+ ){0,2}?(?:go on|keep going|carry on|continue|keep living|keep doing (?:this|life)|keep existing|keep fighting|live|do life|do living|live like|face (?:another|life|tomorrow|the next)|survive (?:another|this|anymore)|make it (?:through|another|anymore)|get through (?:another|tonight|the night)|bear (?:to live|living|another|being alive|life)|stand (?:living|being alive|another day|life)|imagine (?:living|another)|take (?:another day|living|life|being alive)|handle (?:living|life|another day|being alive)|cope with (?:life|living)|endure|exist)(?: (?:like this|this way|anymore|living|with (?:this|life|the) ?(?:pain)?|much longer|in this (?:world|pain)|any|longer|a day|day|one more|another|in|of|life|it|on|tonight|feeling|hurting)(?! (?:town|city|job|house|relationship|without)))*(?= [.,]|$| i | and | but | because | so | it | the | my | everything | no )|"
        r"(?:do not|can not|not|no) (?:[a-z]+ ){0,2}?(?:have |find )?(?:the |any )?(?:strength|energy|will|courage|motivation) (?:left )?to (?:go on|keep (?:going|living|fighting)|live|carry on|continue|keep on)(?! (?:with (?:my|the|this)|working|at work))|lost the will to (?:go on|keep going)",
        "tired-of-life": r"(?:tired|sick|exhausted|weary|done|fed up|finished|through|over|bored|had enough|given up|giving up|give up|gave up|had it|drained) (?:and tired )?(?:of|with|by|from|on) (?:[a-z]+ )?(?:life|living|being alive|existing|existence|my life|this life|this world|the world|breathing|waking up|being here|myself and|my existence|being on this)(?! (?:here|in (?:this|my|the) (?:town|city|house|apartment|dorm|state|country)|with (?:my|him|her|them|roommates|people)|paycheck|at (?:home|my)|alone|out of|long|like (?:a|an|we)|early|situation|lessons?|at \d|for (?:school|work)|up (?:early|at)))|i hate (?:being alive|that i am alive|living|existing|that i woke up|waking up (?:every|each|alive)|my existence)(?! (?:here|in|with|at|alone|so far))|i <own>(?:regret|disappointed|angry|sad|upset|mad|sorry) (?:that |because )?i (?:woke up|am alive|survived|was born)|(?:quit|leave|leaving|exit|exiting|depart) (?:life|this world|this earth|this planet|the world|earth)(?! (?:a better|cup))|too tired to (?:live|exist|keep living|be alive|go on)|wish (?:it|life|everything|my life) (?:would|could) (?:just )?(?:end|be over|stop)",
        # sleep without waking
        "not-wake": r"(?:not|never|wish|hope|hoping|pray|want|praying|without|if i) (?:[a-z]+ ){0,6}?(?:wake|waking|woke|woken|wakeup) ?up(?= [.,]|$| ever| again| anymore| tomorrow| in the morning| one day| at all| because| and | so | i | from it| to this| to another| alive)(?<!not want to hope)|(?:sleep|asleep|close my eyes|sleeping|eyes closed|go to bed) (?:[a-z,]+ ){0,4}?(?:forever|eternally|and (?:never|not|stay)|for good|permanently|for eternity|until it is all over|never (?:to )?wak\w+)|sleep (?:i (?:will|do|would) )?(?:not|never) wak\w+",
        "disappear": r"i <own>(?:<want>|wish i could|wish to|wanting to) (?:[a-z]+ )?(?:disappear|vanish|fade away|evaporate|cease|be gone|not be here|be erased|erase myself|melt away|dissolve|not exist|be nothing|be no one|be invisible forever|be out of (?:here|this world)|stop (?:being|feeling anything)|be (?:at peace|free (?:from|of) (?:this|all|life|pain))|rest in peace|go (?:home to god|to heaven|be with (?:god|jesus)))(?! (?:of|in (?:a|the)|on|to (?:a|the|work|my)|with|for))|"
        r"(?:wish|if only|hope) i (?:could |would |can )?(?:just )?(?:disappear|vanish|fade|did not exist|do not exist|never existed|was never born|were never born|had never been born|never been born|was not born|had not been born|was not here|were not here|was gone|were gone|not be here|stop existing|was not alive|were not alive|not exist|had died|died|had been aborted|go to sleep and never|never had been born)(?! (?:right now at|in|at|for|because of the))|should (?:have )?(?:never|not) (?:been born|have been born|exist|have existed|be here|be alive|have survived)|never (?:asked to be|should have been|been) born|(?:world|everyone|life|they) (?:is|would be|will be|s) better (?:off )?(?:without|if)|remove myself from (?:this|the|existence|earth)|erase (?:me|myself|my existence)|off the face of (?:the|this) earth",
        "be-here": r"(?:do|did) not (?:[a-z]+ )?(?:want|wanna|wish|plan|care|deserve|need|belong) (?:to )?(?:be (?:here|around|in this world|on this (?:earth|planet)|a part of this|part of this world)|stay here|in this world|on this (?:earth|planet)|keep being here|be anymore|wake)(?! (?:at|in (?:this|the) (?:town|city|house|office|hospital|class|meeting|party|place|job)|for|with|alone|when|today|early|working|late|listening))(?= [.,]|$| anymore| any| i | and | but | because | at all)|not (?:made|meant|built|cut out|fit) for (?:this|the) (?:world|life|earth)|(?:not|never) (?:meant|supposed) to (?:be (?:here|alive|born|in this)|exist|live)",
        # "i want it all to stop", "make the pain end"
        "make-it-stop": r"(?:want|need|make|wish|have|can) (?:for )?(?:it|everything|all of (?:it|this)|all this|the (?:pain|suffering|hurt|hurting|misery|noise in my head|voices|agony)|this (?:pain|suffering|misery|agony|torture|nightmare)|my (?:pain|suffering|misery|thoughts|mind|life|brain|head)|this all|life) (?:all )?(?:to |would |could |will )?(?:just )?(?:stop|end|be over|go away|be done|go quiet|go dark|be quiet|be finished|cease)(?! (?:raining|snowing|doing|being so loud|well|soon so|on a|with a))|(?:end|stop|ending|stopping|escape|escaping) (?:the|this|my|all (?:the|this|my)) (?:pain|suffering|misery|agony|hurt|torment)(?! in my (?:back|knee|tooth|leg|foot|neck|shoulder|head|stomach|jaw))|(?:it|everything) will (?:all )?(?:be over|end) (?:soon|tonight|tomorrow|now|today)|soon (?:it|everything|this) (?:will|is going to) (?:all )?(?:be over|end)|(?:be|is|are) (?:over|done) (?:soon )?for me|(?:i|only) <own>(?:want|need|way|find|have) (?:[a-z]+ )?(?:peace|escape|way out|release|out) (?:is|of (?:life|this life|this world|here forever)|forever|permanently|from (?:life|this life|it all|living|myself))|permanent (?:sleep|way out|escape|solution)|only way (?:out|to (?:end|stop|escape|make it|find peace|be free|get out|stop the))(?! (?:is (?:to (?:talk|quit|break|apologi|move|study|work|leave (?:him|her|the job))|through)|of (?:debt|this (?:job|lease|contract))))|(?:see|find|there is|have|got|feel like there is) no (?:other )?(?:way out|way forward|escape|exit|other way|other option|way to go on)(?! of (?:the|my|this) (?:lease|contract|job|parking))|no way out(?= [.,]|$| anymore| of this| and| for me| but)",
        # goodbyes
        "farewell": r"(?:goodbye|bye|farewell|good bye)(?: ,)? (?:(?:to )?(?:cruel )?(?:world|life|forever|everyone forever|my friends forever)|everyone (?:[,.] )?(?:i am sorry|i love you|forgive)|everyone i have|all of you forever)|(?:this is|these are|consider this|say|saying|said|here is|it is) (?:[a-z]+ ){0,2}?(?:my )?(?:final|last) (?:goodbyes?|words|message|post|letter|night|day|entry|note|breath|hours|will|time (?:i|you|writing|talking|anyone))(?! (?:of (?:work|school|class|vacation|summer|the)|at|in (?:this|the|town)|before|on (?:the|vacation)))|(?:saying|said|say|writing|written|wrote|leaving|left|recorded|making|sent|sending) (?:[a-z]+ ){0,3}?(?:goodbye (?:letters?|notes?|messages?|videos?|to (?:everyone|the world|my (?:family|kids|loved|friends|parents|cat|dog)|all))|goodbyes to|letters? (?:to|for) (?:everyone|each|my (?:kids|children|family|parents|mom|loved|wife|husband|daughter|son)) (?:to (?:open|read|find)|for (?:when|after)|explaining|in case|so they)|final (?:message|letter|note)s?)|last (?:time|thing|message) (?:you|anyone|any of you|they|i) (?:will |would |can |ever |may )*(?:hear|see|talk|hears|read|write|speak|bother)|by the time (?:you|anyone|they|someone|this) (?:read|reads|see|sees|find|finds|get|gets|is read)|see you (?:all )?(?:on|in) the (?:other side|next life|afterlife)|(?:in|into) (?:the|my) (?:next|another) life(?=<near>(?:sorry|goodbye|better|meet|see|maybe))|(?:you|they|no one|anyone) (?:will not|would not|wont) (?:have to|need to|be) (?:[a-z]+ ){0,3}?(?:worry|worrying|deal|put up|bother\w*|take care of|hear|care about|see|suffer|burdened|hear from|worried) (?:[a-z]+ ){0,3}?(?:me|my (?:shit|problems|drama)) (?:[a-z]+ ){0,3}?(?:anymore|again|much longer|for long|longer|soon|after)|(?:will not|wont) (?:be a (?:burden|problem|bother)|bother|trouble|annoy|disappoint|hurt) (?:[a-z]+ ){0,3}?(?:anymore|much longer|for long|longer|again)(?=<near>)|"
        r"(?:remember|forgive|forget) me (?:when|after|once|for what i) (?:[a-z]+ ){0,3}?(?:gone|going to|about to|dead|am doing)|(?:when|after|once|now that|before|in case) i (?:am|go|leave|will be|have) ?(?:gone|pass|am gone|dead|no longer here|go|not here|die) (?:for good|forever)?(?=<near>\b(?:take care|look after|cat|dog|kids|tell|feed|give|promise|remember|please|everyone|happy|cry|sad|blame|miss|know|move on|finally|stuff|things|funeral|family))",
        "affairs": r"(?:giv(?:e|en|ing)|gave) (?:away )?(?:all |everything |most )?(?:of )?(?:my )?(?:[a-z]+ ){0,3}?(?:stuff|things|belongings|possessions|clothes|savings|jewel\w+|records|guitar|collection|everything|dog|cat|pets?|car)? ?away(?=<near>(?:need|gone|sorry|will not|do not|anymore|goodbye|peace|where i am going|longer|leave|forever|dark|last))|(?:giving|gave|given) away (?:all |most )?(?:of )?my (?:stuff|things|belongings|possessions|pets?|dog|cat|favou?rite)|will not (?:be needing|need) (?:them|it|my|any of|anything|these|this|money|that)(?: [a-z]+){0,3}? (?:anymore|where i|soon|much longer|after)|(?:got|get|getting|put|putting|set|setting|having|have) (?:all )?(?:my |our )?(?:affairs|things|everything) (?:are )?in order(?=<near>(?:gone|soon|leave|goodbye|family|end|die|peace|they|note|letter|kids|ready|nothing|no one|tired))|(?:who|someone|anyone|someone else|please|you|make sure) (?:[a-z]+ ){0,4}?(?:take care of|look after|feed|adopt|raise) my (?:[a-z]+ )?(?:dog|cat|kids|children|son|daughter|mom|pets?|baby|siblings?|brother|sister) (?:if i|when i|after i|once i)(?= (?:am (?:gone|dead|not)|die|died|do not|was gone|disappear|leave this))|(?:planned|planning|plan|picked|picking|chosen|choose|choosing|paid for|arranged|arranging) (?:out )?(?:my|the music for my|songs for my|a date|the date|the day) (?:own )?(?:funeral|to (?:die|do it|end|go))|(?:have|got|made|making|set|picked|chosen) (?:a |an |the |my )?(?:exit )?(?:plan|date|method|day|way)(?: (?:picked|set|ready|planned|chosen|out|now|and))* (?:to (?:die|end|do it|go|kill|leave this)|and (?:the|i am|everything|a) (?:[a-z]+ ){0,2}?(?:ready|date|method|pills|means|going|plan|gun|rope)|for (?:how|when) i)",
        # death wished for, not sought
        "hit-me": r"(?:hope|wish|wishing|hoping|pray|praying|want|wanted|mind|care|if|disappointed|wondering|fantasi[sz]e|fantasi[sz]ing|daydream|imagine|imagining|thinking|love|glad|relieved|okay|ok|fine|dream) (?:[a-z]+ ){0,6}?(?:a |the |some |my |that )?(?:car|bus|truck|train|plane|lightning|asteroid|meteor|cancer|accident|heart|tumou?r|disease|illness|covid|robber|something|someone|drunk driver|semi|stray bullet|heart attack|aneurysm) (?:[a-z]+ ){0,3}?(?:hit|hits|hitting|struck|strikes|run|runs|crash|crashes|crashed|take me|takes me|took me|kill|kills|killed|kills me|would (?:hit|take|kill|end|run|just)|stops?|stopped|gave out|give out|end it|ends)(?: (?:me|over|my|us|beating|with me|on))|(?:hit|run over|struck|crushed|killed|shot|murdered|flattened|mowed down) by (?:a |an |the |some )?(?:[a-z]+ )?(?:car|bus|truck|train|lightning|asteroid|meteor|drunk driver|bullet|stranger|someone|semi)(?=<near>(?:not mind|would be (?:ok|okay|fine|nice|great|a relief|good|easier|so)|relief|not care|not be (?:so|that) (?:bad|sad|upset)|hope|solve|easier))|(?:would not|do not|not|never) (?:[a-z]+ ){0,2}?(?:mind|care|be (?:sad|upset|mad|bothered|opposed)|complain|be (?:that )?sad|matter|fight it|fear|afraid of|scared of|scared to|afraid to) (?:[a-z]+ ){0,3}?(?:if i |dying|death|die|getting hit|being hit|whether i |being dead|to die|not waking)(?:[a-z]+ ){0,4}?(?:died?|dead|live or die|live|not wake|never w[ao]ke|got hit|were|was|hit|gone|disappear\w*|drop|anymore|killed|tomorrow|tonight|wake)?(?= [.,]|$| up| in| by| and| today| or| anymore| at| because| but| tomorrow| tonight| dead| gone| killed| to me)|(?:i )?(?:wish|hope) i (?:got|get|had|have|would get|could get|gets?|catch|caught) (?:[a-z]+ ){0,2}?(?:cancer|hit by|terminal|sick and|covid and|killed|shot|in (?:a|an) (?:car )?(?:accident|crash)|some disease|a (?:fatal|deadly|terminal))|(?:should|could|wish it) (?:have|had) been me (?:who|that|instead|in)|wish (?:it|that) (?:was|were|had been) me (?:who|that|instead)|(?:not|never) look(?:ing)? (?:both ways|before)|(?:died|dies|dead|pass away) (?:in my sleep|tonight|tomorrow)(?=<near>(?:okay|fine|relief|not mind|good|happy|care|better))|(?:do not|could not) care (?:[a-z]+ )?(?:if|whether) i (?:live|die|am alive|wake|survive|get killed|crash)|jealous of (?:the dead|dead people|people who (?:die|died|are dead|are dying|get))|envy (?:the dead|people who (?:die|died))|i should have died|(?:death|dying|being dead) (?:sounds|seems|feels|looks|would be|is starting to|might be|is) (?:[a-z]+ ){0,3}?(?:nice|good|peaceful|better|easier|relief|comforting|appealing|inviting|welcome|great|like a relief|freedom|so|only|beautiful|tempting|like)",
        # looking for the means
        "means-asked": r"(?:how many|how much|what amount of|what dose of|which|what) (?:[a-z0-9]+ ){0,5}?(?:<drug>|<poison>|alcohol) (?:[a-z0-9]+ ){0,5}?(?:kill|die|lethal|overdose|fatal|end|not wake|never wake|deadly|od|take to|death|too many|sleep forever)|(?:painless|easiest|quickest|fastest|best|least painful|peaceful|quick|quietest|easy|surest|cleanest|less painful|good|foolproof) (?:and [a-z]+ )?(?:way|ways|method|methods|place|places|time) (?:for (?:me|someone) )?(?:to|of) (?:die|dying|go(?= [.,]|$)|end (?:it|my|everything)|kill (?:myself|yourself)|suicide|commit|killing|leave this|hang|overdose|unalive|jump)|(?:ways|how|methods|way) (?:do i |can i |could i |to |i can |i could |would i |should i )(?:[a-z]+ )?(?:die|kill myself|end my life|end it all|hang myself|commit suicide|overdose|stop existing|not wake up|unalive)(?! (?:hard|in (?:the|this|a) (?:game|level)))|(?:does|will|would|is) (?:it |hanging |drowning |overdosing |dying |jumping |bleeding out |suffocat\w+ |freezing to death )(?:be )?(?:hurt|painful|painless|quick|peaceful|instant)(?=<near>(?:die|hang|jump|drown|overdos|kill|bleed|fall|death|to end|when you)| [.,]|$)|(?:looking up|looked up|googling|googled|researching|researched|searching|searched|reading about|read about|comparing) (?:[a-z]+ ){0,4}?(?:suicide|ways to (?:die|end|kill|go)|how to (?:die|kill|tie a|hang|overdose|end)|lethal|methods|bridges|painless|overdose|noose)|lethal dose|tie a noose|(?:what|which) (?:height|floor|bridge) (?:[a-z]+ ){0,6}?(?:die|kill|survive|fall|jump|fatal)|would (?:a fall|the fall|falling|jumping) from (?:[a-z0-9]+ ){0,5}?(?:kill|be enough|be fatal|hurt)",
        "means-near": r"i <own>(?:have|got|bought|ordered|stockpil\w+|saved|saving|collected|collecting|hoarding|hoarded|hid|hiding|loaded|found|keep|kept|stashed|stole|staring at|stare at|looking at|look at|sitting with|holding|hold|counting|counted|count|lined up|eyeing|brought|sitting here with|sitting next to|eyeballing|watching) (?:up )?(?:at )?(?:a |an |the |my |some |all |enough |out |this |these |those |up |of |whole |dad s |mom s |full |big |his |her |\d+ |bottle |bottles |stash |pile |handful )*(?:[a-z]+ )?(?:noose|rope|razors?|razor blades?|blades?|gun|sleeping pills|helium|charcoal|nembutal|sodium nitrite|pistol|shotgun|pills|<drug>|knives|knife|box cutter) (?:[a-z]+ ){0,3}?(?:ready|loaded|picked out|saved up|next to me|in (?:my (?:hand|lap|drawer|bathroom|room|closet)|front)|beside me|to do it|to end|for tonight|hidden|here with me|in case|just in case|one by one|and (?:wonder|think|i am (?:thinking|going|ready)|wondering|thinking|no one)|wondering|thinking|over and over|every night|for when|until|by the bed|under my|tonight|for weeks|for months|that would|should be enough|is enough|calls|calling)|(?:pills|gun|razor|rope|blade|knife|knives|bridge|tracks|medicine cabinet|edge|bottle) (?:is|are|keeps?|s) (?:[a-z]+ ){0,2}?(?:calling (?:me|my name|to me)|looking (?:good|tempting|so|at me|friendly|inviting)|tempting|right there|within reach|so close|staring at me|whispering)",
        "at-the-edge": r"(?:i|am|been) <own>(?:standing|sitting|stood|sit|stand|parked|walking|perched|am|waiting|dangling|looking down|staring down|drove|went|walked|hanging|climbed|wander\w*|go|leaning) (?:[a-z]+ ){0,3}?(?:on|at|near|by|over|off|from|up|along|to|onto) (?:[a-z]+ ){0,3}?(?:<height>|train tracks|tracks|platform|edge|railing|railway|rail|river|pier)(?=<near>(?:look\w* down|jump|thinking|wonder\w*|how (?:easy|far|long|quick)|courage|end|no one|goodbye|die|step|fall|last|brave|go(?:ing)? over|let go|one step|nothing|over|stop me|water|cold|quiet|drop|train)| [.]|$)(?<!the river)|(?:one|a) step (?:from|and|would|off|forward) (?:the edge|it (?:would|will|is|all)|the (?:ledge|bridge|roof))|(?:look|looking|stare|staring|looked) (?:down )?(?:at|from|over) (?:the |my |a )?(?:<height>|train tracks|tracks|edge|railing|water) (?:and|,|i) (?:[a-z]+ ){0,4}?(?:jump\w*|think|wonder\w*|imagine|how|end|fall\w*|what if|step)|(?:tempting|urge|imagine|imagining|wonder\w*|think\w*|thought|what (?:if|it would be like)|how (?:easy|it would)) (?:[a-z]+ ){0,6}?(?:to let go|letting go of the (?:wheel|railing)|to swerve|swerving|to step (?:off|in front|out)|stepping (?:off|in front|into)|to jump|jumping|falling (?:off|from)|let go of the wheel)(?! (?:rope|for joy|into (?:bed|the pool|water)|in (?:the )?(?:pool|lake)|parachut|out of a plane|on (?:a|the) (?:trampoline|bed)|to conclusions|ship))",
        # "i do not trust myself tonight", "i might do something stupid"
        "not-safe": r"(?:do|can) not trust myself (?:[a-z]+ ){0,2}?(?:tonight|alone|anymore|now|around (?:knives|pills|sharp|the|my)|not to|with (?:pills|the|knives|a|my)|to be|today|to stay|to (?:be )?alone|when)|i am not safe (?:with myself|from myself|alone|tonight|now|by myself|in my own|around)|(?:am|be|feel|feeling|not) (?:un)?safe (?:with|from|by) (?:myself|my own (?:thoughts|mind|head))|(?:afraid|scared|terrified) (?:of (?:what i (?:might|could|will|may|would|am going to) do|myself|my own (?:thoughts|mind|hands|head)|being alone with (?:myself|my thoughts|my pills)|the thoughts)|i (?:will|might|am going to|would|could) (?:do (?:something|it)|hurt|act on|lose the fight|give in))(?! (?:with my (?:life|hair)|wrong|at work|when i see|on stage|if i win))|(?:might|will|going to|about to|gonna|want to|could) do something (?:[a-z]+ )?(?:stupid|bad|drastic|terrible|crazy|i (?:will|can|might|would)|permanent|irreversible|dangerous|horrible|awful) (?:to (?:myself|me)|tonight|soon|if (?:i am left|no one|someone does not|i stay|i do not)|and|[.,]|because)|i <own>(?:am|feel) at (?:my|the) (?:breaking point|end of (?:my|the) (?:rope|tether|line|road))(?=<near>(?:life|everything|can not|no|give|done|anymore|goodbye|over))|(?:thoughts|dark thoughts|the darkness|urges|bad thoughts|intrusive thoughts|demons) (?:are|is|have|keep|came|come|keeps) (?:[a-z]+ ){0,3}?(?:back|coming back|winning|taking over|louder|won|stronger|returned|too loud|getting (?:louder|worse|stronger|darker)|consuming|darker|calling)|(?:having|have|had|get|getting|with|been having) (?:[a-z]+ ){0,3}?(?:dark|scary|bad|really dark|intrusive|those|the) thoughts (?:again|about (?:myself|dying|death|ending|not)|of (?:ending|hurting|not|dying|death)|tonight|and i am scared)|(?:one|last|only) (?:thing|reason|person|thread) (?:keeping|that keeps|holding|stopping|that is keeping|i am|i stay|i have|that stops|why i am|why i have|left (?:keeping|holding)) (?:[a-z]+ ){0,3}?(?:alive|here|going|me (?:alive|here|from|going)|not (?:done|gone|killed|ended|dead|do|ended)|around|done it)|(?:tonight|today|this|tomorrow) (?:is|will be|might be|could be|s) (?:the night|my last|the last|the day i|the night i)(?! (?:day of|night of|time i|day at|night (?:at|in|here)|chance|exam|class|minute|week of|party|dance|shift))|(?:made|make) (?:my )?peace with (?:dying|death|it|god|leaving|going|the end|that|ending)(?! (?:being|not))|(?:made|make) up my mind(?=<near>(?:no one can (?:stop|change)|nothing|tonight|peace|goodbye|relief|calm|end|sorry|over|do not try))|(?:join|see|be with|meet|go to|reunite with|reunited with|follow|be back with) (?:my (?:late )?[a-z]+|him|her|them|you|god|jesus|the lord|mom|dad) (?:[a-z]+ ){0,2}?(?:in heaven|soon in|on the other side|in the afterlife|in death|again soon (?:in|up)|in the (?:sky|grave|ground|next life)|wherever (?:he|she|they)|up there|to the grave)|(?:be|am) with (?:him|her|them|my (?:late )?[a-z]+) (?:again )?(?:soon|tonight)(?=<near>(?:heaven|died|passed|gone|death|grave|funeral|end|pain|peace|no one|take))",
    }),
    *_rules("danger", "indirect", "self", {
        # fear at home
        "unsafe-home": r"(?:am|do|feel|is|not|be) not (?:feel )?safe (?:at home|here|in (?:my|this|our) (?:home|house|apartment|relationship)|with (?:him|her|them|my <kin>)|around (?:him|her|them|my <kin>)|tonight|going home|to go home|now)|unsafe (?:at home|with (?:him|her)|around (?:him|her)|in my own home)|(?:fear|afraid|scared|fearing|terrified) for my (?:life|safety|kids|children)|(?:scared|afraid|terrified|dread\w*|frightened) (?:of going|to go|to come|of coming|to be|of being|to stay) (?:back )?home(?=<near>\b(?:he|she|dad|husband|boyfriend|drunk|him|her|hit|hurt|angry|father|stepdad|they|punish|beat)\b)|(?:scared|afraid|terrified|know|worried) (?:of )?what (?:he|she|they|my <kin>) (?:will|might|would|is going to|could|is capable|may) do (?:to me|to us|when|if|tonight|next)|(?:he|she|they|my <kin>) (?:gets?|becomes?|is|are|s|got|came home|comes home) (?:[a-z]+ )?(?:violent|physical with me|drunk and (?:angry|hit|violent|scream\w*|break\w*|throw\w*))|(?:hide|hiding|cover|covering) (?:the |my |these )?bruises|(?:bruises|black eye|marks) (?:[a-z]+ ){0,4}?(?:he|she|him|her|husband|boyfriend|dad|stepdad) (?:left|gave|did|made)|(?:he|she|they|my <kin>) (?:gave me|left me with) (?:a |these |the )?(?:black eye|bruises|broken|marks)|(?:he|she|my <kin>) (?:will|is going to) (?:find|come for|come after|get) (?:me|us) (?:and|if|when|tonight)|(?:someone|a man|some guy|a car|two men|he|my ex) (?:is|s|keeps|has been) (?:following|stalking|watching) me (?:[a-z]+ ){0,4}?(?:home|now|tonight|in the dark|outside|for (?:blocks|an hour|weeks|days|months)|everywhere|at night|from|on the street|and i am)|next time (?:he|she) (?:will|might|is going to) (?:kill|not stop|do it|finish)",
        "threatened": r"(?:he|she|they|my <kin>) (?:is|s|are|keeps?|has been|have been|started) (?:threatening|intimidating|stalking|abusing) (?:me|us)",
    }),
    *_rules("danger", "indirect", "other", {
        # rage that asks for a target
        "rage": r"(?:he|she|they|everyone|all of them|those [a-z]+|the people [a-z ]{0,20}) (?:will|is going to|are going to|s going to) (?:all )?(?:regret|pay|be sorry|suffer|get what)(?: [a-z]+){0,6}? ?(?:tonight|tomorrow|when i|once i|blood|with (?:his|her|their) li\w+|gun|knife|for what (?:they|he|she) did (?:and|to me)|in hell|soon)|i <own>(?:want|going|need|plan|would) (?:to )?(?:make|see|watch) (?:him|her|them|everyone|those [a-z]+|my <kin>) (?:all )?(?:suffer|bleed|pay (?:with|for) (?:his|her|their|it with) (?:li\w+|blood)|hurt|die|scream|beg|feel real pain|disappear|regret (?:being born|it))|(?:scared|afraid|terrified|worried) (?:that )?i (?:will|might|am going to|am about to|could) (?:snap|lose control|lose it|explode|black out|do something) (?:and|on|to) (?:hurt|kill|him|her|them|someone|my|do|hit)|(?:about to|going to|might|will) snap and (?:hurt|kill|do|someone|shoot|stab)|(?:know|figured out|found out|have|got) (?:exactly )?where (?:he|she|they) (?:live|lives|work|works|sleep|sleeps|park|parks)(?=<near>(?:gun|knife|pay|kill|hurt|tonight|regret|visit|revenge|wait|plan|weapon))|(?:want|need|plan\w*|planning|going to (?:get|have|take)|get|getting|take|taking) (?:[a-z]+ )?revenge (?:[a-z]+ ){0,4}?(?:blood|tonight|hurt|kill|violent|pain|whatever it takes|gun|knife)|(?:i|me) <own>(?:urge|urges|want|impulse|impulses|thoughts|fantas\w+) (?:to|of|about) (?:violence|violent|hurt|hurting|hit and not stop|attack|attacking|strangle|strangling|killing|kill)(?= (?:people|someone|him|her|them|everyone|others|my|strangers|[.,])|$)",
    }),
)  # fmt: skip

# Weak alone; two of different families are an indirect sign.
HINTS = tuple(
    Hint(family, WORDS.compile(pattern))
    for family, pattern in (
        ("exhausted", r"(?:can not|can t|could not) (?:[a-z]+ )?(?:do (?:this|it)|take (?:it|this|the pain)|handle (?:it|this)|keep (?:doing this|this up)|go on|hold on|cope|pretend) ?(?:all )?(?:anymore|much longer|for long)?(?= [.,]|$| i | and | no | it | because | everything | so )|"
         r"(?:tired|exhausted|sick|done|fed up|over) (?:of|with) (?:everything|it all|all of (?:it|this)|fighting|trying|pretending|this pain|hurting|feeling (?:like this|this way)|being (?:sad|in pain|me|a failure))|"
         r"i (?:give up|am done|am finished|am giving up|have given up|quit|surrender)(?= [.,]|$| i | and )|(?:nothing|no strength|no energy|no fight) left (?:in me|to give)|i have (?:had|tried) (?:enough|everything)(?= [.,]|$| and)|at the end of my rope"),
        ("despair", r"(?:nothing|no one|none of it|it) (?:[a-z]+ )?(?:matters?|helps|will (?:ever )?(?:change|get better|help)) ?(?:anymore)?(?= [.,]|$| and | i )|(?:no|lost all|lost|any|without|out of) hope (?:left|anymore|for me|in|of)?(?= [.,]|$| and | i | it | for )|"
         r"(?:no|what is the) point (?:in anything|anymore|of anything|to anything|in trying|of trying|of it)?(?= [.,]|$| and | i )|(?:will|going to) (?:never|not) (?:get|be) (?:any )?(?:better|okay|ok|happy)(?= [.,]|$| and | i )|dead inside|(?:trapped|stuck) (?:in (?:this|my) (?:pain|darkness|head|hell|life)|with no)|"
         r"i (?:am|feel) (?:[a-z]+ )?(?:hopeless|trapped|already dead|beyond (?:help|saving|repair))|(?:it is|its) too late (?:for me|anymore|now)?(?= [.,]|$)|everything is (?:dark|black|pointless|over|ruined)|i have (?:nothing|no one) (?:left)?(?= [.,]|$| and | i )|lost everything|no future"),
        ("worthless", r"i am (?:[a-z]+ )?(?:worthless|useless|a burden|nothing|no one|a waste|trash|garbage|a mistake|unlovable|broken|a failure|in the way|not (?:wanted|needed|worth it|worth saving))(?= [.,]|$| and | to | i )|i (?:feel|felt) (?:[a-z]+ ){0,2}?(?:worthless|like a burden|like a waste)|"
         r"no one (?:[a-z]+ )?(?:wants|needs|loves|cares about|would miss|will miss) me|i hate (?:myself|who i am)|i (?:ruin|destroy|ruined|mess up|poison) (?:everything|everyone)|(?:everyone|they all|people) (?:hates|hate|would be happier|leaves?) me|i deserve (?:this|pain|to suffer|nothing|it all)|do not deserve (?:to be happy|anything|love|help|to breathe)"),
        ("farewell", r"(?:good ?bye|farewell) (?:everyone|everybody|all|my love|friends|mom|to (?:all|everyone))|(?:tell|let) (?:my|him|her|them|everyone) (?:[a-z]+ )?(?:know )?(?:that )?i (?:love|loved|tried|am sorry)|take (?:good )?care of (?:my|yourselves|each other|mom|dad|them|him|her)(?= [.,]|$| for me| mom| dad| dog| cat| kids)|"
         r"(?:i am |so )?sorry (?:to |for )?(?:everyone|everything|mom|dad|my (?:family|kids|love|mom|parents)|i (?:could not|was not|failed|let))|forgive me|(?:i )?love you all|thank you for (?:everything|trying|being there|all)|remember me|(?:do not|please do not) (?:be sad|cry|blame yourself|blame yourselves|look for me|try to (?:stop|find|save))|this is (?:it|goodbye|the end)(?= [.,]|$| for me| i )|i tried(?= [.,]|$| i | so )|goodbye(?= [.,]|$)"),
        ("escape", r"(?:kill|shoot|end) me(?= [.,]|$| now| please)|(?:want|need|looking for|find|wish for) (?:a way )?out(?= [.,]|$| of (?:this life|here|everything))|(?:i )?(?:want|need|wish) (?:it|this|everything|the pain) (?:all )?to (?:stop|end|be over)|make it (?:all )?stop|(?:sleep|rest) (?:forever|for a long time)|i want (?:peace|to rest|it to be over|to be gone|to sleep)(?= [.,]|$| and )|"
         r"(?:do not|can not) (?:want to )?(?:feel|be) (?:anything |this )?anymore|i (?:want to|wish i could) (?:disappear|escape|vanish|be gone|leave)(?= [.,]|$| and | from )|(?:it will|it ll|everything will) be over soon|not be here|the other side|tonight is the night|i have (?:a|my) plan|pills"),
    )
)  # fmt: skip

SELF = r"^(?!other|intent|violence|weapon|intruder|threat|captive|hiding|call|rage|unsafe|overdose-taken|poison-taken|bleeding)"
_c = WORDS.compile


def _guard(name: str, rules: str, **parts: str) -> Guard:
    import re

    return Guard(name, re.compile(rules), **{part: _c(pattern) for part, pattern in parts.items()})


GUARDS = (
    # "i would never hurt myself", "not going to kill myself"; not "can not stop", "not sure", "not yet", "only reason"
    _guard(
        "negated",
        r"^(?!live-not|go-on|be-here|not-|no-|hit-me|violence|weapon|intruder|captive|hiding|threat|other|overdose-taken|burden|unsafe|make-it|farewell|means-near|voices)",
        before=r"(?:not|never|no|without|neither|nor|stopped|quit|instead of|avoid|against|rule out|far from|nothing like|prevent me from|kept me from|keeps me from|stop me from|talked out of) "
        r"(?:(?!(?:i|stop|sure|know|help|resist|shake|wait|afraid|scared|hesitate|until|brave|believe|joking|kidding|lying|reason|why|only|who|one|if|longer|think i|control|and|but|because|thought)\b)[a-z]+ ){0,5}$",
        after=r"(?! yet|(?:[^.]* )?but (?:i might|now|i want|i am))[^~]*",
    ),
    _guard("not-suicidal", r"^(?:suicid|kill-self|harm-self|self-harm|end-life|die)", before=r"(?:no|zero|not any|without any|never had(?: any)?|not having|do not have(?: any)?) (?:[a-z]+ ){0,3}$"),
    # years ago, and well today
    _guard(
        "past",
        r"^(?!intent|violence-now|weapon|threat|hiding|means|farewell|at-the)",
        clause=r"(?:i|me|my) (?:[a-z]+ ){0,3}?(?:was|were|had|used to|wanted|tried|thought|felt|cut|did|planned|considered|attempted|hurt|harmed|self harmed|would|almost|overdosed|took|struggled|battled|went|came|could|wished|swallowed|ended|survived|started|made|been|suffered|contemplated|lost|hated|saw|told|drank|got|dealt|have been|lived|didnt|did not|self) ?[^.]*",
        message=r"(?:(?:years?|decades?|long time|ages|months) (?:ago|back|now)|when i was (?:a |an |in |my |much |[a-z]+teen|\d+|young\w*|twenty|ten|eleven|twelve|little|at (?:university|school|college)|pregnant|sick)|used to|in the past|back (?:then|in)|as a (?:teen\w*|kid|child|young)|at (?:one|that) point|once upon|in (?:19|20)\d\d|in (?:high|middle|my) (?:school|teens|twenties|20s)|(?:last|that) (?:year|winter|summer)|during (?:college|university|high school|my|the (?:divorce|pandemic))|before (?:i (?:got|found|met|went|started)|therapy|treatment|my)|a (?:few|couple|decade|lifetime)|there was a time|at my (?:lowest|worst)|in college|once|my (?:teens|younger)|growing up)"
        r"[^~]*",
        unless=r"(?:again|lately|are back|is back|came back|coming back|relaps\w+|now i (?:want|am thinking|feel like)|(?:want|feel|thinking)[a-z ]{0,20} (?:it|that way|the same) (?:again|now)|returned|returning|do not see|tonight|this time|and i (?:still|want)|wish i had|wish it had|should have (?:worked|died|done)|nothing has changed|recently|last (?:night|week|month)|since then i have wanted)",
    ),
    # told of somebody else: "she said i want to die", "my friend texted me: im going to kill myself"
    _guard(
        "reported",
        SELF,
        before=r"(?:he|she|they|(?:my|a|the|his|her) (?:[a-z]+ )?(?:<kin>|student|patient|client|character|girl|boy|guy|kid|singer|narrator|lyrics?|song|line|patients|caller|protagonist|hero|heroine|villain)|someone|people|everyone|who|patient|lyrics?|song) (?:[a-z]+ ){0,2}?(?:said|says|saying|texted|wrote|posted|yelled|screamed|sings|goes|told me|tells me|tweeted|messaged|shouted|joked|is like|was like|whispers?|keeps saying|kept saying|announced|asks|asked|go|say)(?: me| that| [a-z]+)? ?(?:, )?(?:[a-z]+ ){0,2}$",
    ),
    # novels, films, games, songs, dreams, study and work
    _guard(
        "fiction",
        r"^(?!overdose-taken|call)",
        sentence=r"(?:character|characters|protagonist|villain|narrator|heroine|actor|actress|npc|respawn\w*|checkpoint|speedrun\w*|playthrough|cutscene|lyrics?|screenplay|in ?game|sims?|minecraft|fortnite|skyrim|gta|valorant|zelda|elden ring|dark souls|league|warzone|overwatch|roblox|dnd|d and d|larp\w*|fanfic\w*|(?:boss|final|next) (?:fight|level|battle)|level \d+|my (?:squad|raid|guild|healer|tank|teammates?)|save file|(?:in|for|of|from|playing|watching|watched|read|reading|saw|writing|wrote|finished|finish|play|seen|watch|to|about|love|hear|heard|write|see|acting in|directing|like) (?:the |a |an |my |this |that |our |some |his |her |one |new |old |horror |crime |true crime |short |school |video |sad |murder |mystery |favou?rite |first |last |chapter of |scene of |season of |episode of |zombie )*(?:game|games|story|stories|novel|novels|movie|movies|film|films|book|books|play|show|series|scene|song|songs|episode|episodes|script|chapter|campaign|musical|opera|anime|manga|comic|documentary|podcast|drama|video|tv|thriller|poem|plot|rpg|tale)|(?:movie|film|book|novel|show|song|story|series|documentary|podcast|episode|poem|play|game|anime) (?:about|where|called|in which|with|says|goes|is about|named|titled|that)|i (?:had a |keep having |have )?(?:dream|dreams|dreamed|dreamt|nightmare|nightmares)(?: (?:last night|that|about|where|in which|i))|in my (?:dream|nightmare)|(?:essay|thesis|dissertation|paper|report|lecture|article|training|seminar|class|research|study|course|project|exam|chapter) (?:on|about|for)|volunteer\w* (?:at|for|on|as)|(?:halloween|stage|theater|theatre) )",
        unless=r"(?:want|need|wish|going|feel like|makes me want|thinking|like|just like) (?:[a-z]+ ){0,2}?(?:the character|in the (?:movie|book|show) i (?:want|will)|to do the same|for real|in real life)|i (?:also|too) want|same as me",
    ),
    # embarrassment: "i tripped in front of everyone and wanted to die"
    _guard(
        "embarrassed",
        r"^(?:die|disappear|kill-self|not-wake|slang|jump)",
        message=r"(?:embarrass\w*|mortif\w+|cringe\w*|cringy|awkward\w*|humiliat\w+|blush\w*|tripped|farted|fart|zipper|in front of (?:everyone|the (?:class|whole|entire|office)|my (?:crush|class|whole|boss|friends|date)|people|all|him|her|a)|my crush|wrong (?:person|number|group|window)|spilled|stumbled|bright red|beet red|fell (?:flat|down|on)|pants|called (?:my|the|him|her) [a-z]+ (?:mom|dad|babe|love)|hot mic|on mute|karaoke|voice crack\w*|toilet paper|hit send|reply all)",
        unless=r"(?:anymore|every day|every night|for (?:months|weeks|years)|pills|for real|suicid\w+|kill(?:ing)? myself|bully|bullied|bullies|abuse\w*|hate my life|note|never wake|plan|tonight|no one cares|laughed at me every)",
    ),
    # accidents of kitchen, workshop and sport
    _guard(
        "accident",
        r"^(?:harm-self|wrists|kill-self|gun-head|drive|bleeding|self-harm|noose)",
        message=r"(?:accident\w*|by mistake|shav\w+|cook\w*|kitchen|chop\w*|slic\w+|dic(?:ing|ed) |peel\w*|stove|oven|ironing|iron|pan|pot|grease|coffee|tea|soup|curling|straightener|hot (?:water|glue|oil)|gym|lifting|lifted|workout|work out|running|ran|hik\w+|play(?:ing|ed)|soccer|football|basketball|tennis|yoga|fell|falling off|tripped|slipped|broken glass|shard|paper|saw|garage|can lid|mower|dishes|sunburn\w*|skat\w+|skii?\w*|bike|bicycle|stairs|exercis\w+|stretch\w*|tool|wood|practice|match|fixing|gardening|rose ?bush|thorns?|fence|cardboard|opening a|avocado|bagel|tattoo|surgery|surgeon|operation|dance|dancing|rash|sun|beach|barbed|cat scratch\w*|onions?|vegetables?|carrots?|grill|bbq|lawn|shower door|band ?aid|stitches from|hairdresser|hair|split ends|bangs|nails)",
        unless=r"(?:on purpose|want(?:ed|ing)? to|urge|deserve|to feel|to cope|again and again|hate myself|numb|going to|kill myself|suicid\w+|relief|punish|every (?:night|day|time)|deliberate\w*|intention\w*|wish)",
    ),
    # jokes: laughter about something small
    _guard(
        "jest",
        r"^(?:kill-self|die|slang|jump|end-life|end-it|intent-kill|threat|live-not|disappear|drive|overdose-plan|gun-head|noose|hit-me|wrists)",
        message=r"haha[^~]*",
        sentence=r"(?:exams?|homework|essay|finals|midterms?|meeting|meetings|monday|mondays|traffic|song|songs|spreadsheets?|emails?|boss|class|cringe|laundry|dishes|commute|game|match|team|update|wifi|internet|printer|movie|show|episode|season|finale|coffee|diet|gym|leg day|workout|stairs|heat|weather|cold|hangover|hungry|cute|puppy|selfie|haircut|bangs|math|maths|calculus|chemistry|physics|assignments?|quiz|deadline|deadlines|group project|zoom|teams call|shift|customers?|karen|sale|shopping|parking|autocorrect|typo|meme|pun|puns|joke|jokes|cat|dog|brother|sister|roommate|snack|fries|pizza|ate|if he|if she|if you|if they|spoil\w*|fantasy football|netflix|period|cramps|alarm|early|lecture|presentation|outfit|sims)[^~]*",
        unless=r"(?:not (?:joking|kidding)|no joke|for real|suicid\w+|pills|rope|gun|blade|no one would|no one cares|serious|goodbye|tonight i|really mean|hate my life|plan|note)",
    ),
    # small provocations: "if i have to sit through one more meeting i will kill myself"
    _guard(
        "one-more",
        r"^(?:kill-self|die|slang|jump|end-life|gun-head|wrists|drive|overdose-plan|noose)",
        before=r"(?:if|one more|another) [^.]*(?:one more|another|hear|listen|watch|sit through|see|read|answer|attend|explain|get)\b (?:[a-z]+ ){0,4}?(?:meetings?|songs?|emails?|spreadsheets?|commercials?|ads?|episodes?|slides?|presentations?|zooms?|calls?|form|forms|ticket|tickets|essay|essays|page|pages|problem set|worksheet|christmas|jingle|podcast|powerpoint|pun|puns|story|lecture|homework|salad|question|questions|word|wedding|baby shower|tiktok|memes?|commute|traffic|line|queue|report)\b[^~]*$",
        unless=r"(?:suicid\w+|pills|rope|no one|goodbye|for real|serious\w*|not joking)",
    ),
    _guard(
        "small-cause",
        r"^(?:die|slang|kill-self|jump|hit-me|disappear|live-not|no-reason|go-on|tired)",
        before=r"(?:(?:this|that|the|these|those|my|his|her|monday|your|doing|having|such) (?:[a-z]+ ){0,3}?(?:homework|exam|exams|song|movie|show|game|traffic|commute|meeting|meetings|heat|weather|hangover|workout|wifi|internet|update|printer|commercial|ad|music|pun|joke|diet|queue|line|spreadsheet|presentation|lecture|math|calculus|hiccups|cramps|assignment|lag|autocorrect|haircut|outfit|pizza|coffee|season finale|finale|mondays?|loading screen|hold music)) (?:[a-z]+ ){0,4}?(?:makes?|made|making|has) (?:me )?(?:[a-z]+ ){0,2}$",
        unless=r"(?:suicid\w+|pills|rope|no one|goodbye|for real|serious\w*|not joking|hate my life|every day|plan)",
    ),
    _guard(
        "will-to-live-queue",
        r"^(?:live-not|go-on)",
        sentence=r"(?:lost|losing|lose|no|sap\w*|drain\w*) (?:[a-z]+ ){0,3}?will to live[^~]*",
        message=r"(?:queue|meeting|line|traffic|commute|homework|lecture|hold|customer service|dmv|ikea|spreadsheet|assembling|form|forms|training|zoom|presentation|haha|paperwork|shopping|airport|mall|slides)[^~]*",
        unless=r"(?:suicid\w+|every day|months|years|depress\w+|cry\w*|alone|no one|since (?:he|she|my))",
    ),
    # bodily pain that should stop
    _guard(
        "bodily-pain",
        r"^(?:make-it-stop|die-want|go-on)",
        message=r"(?:tooth|toothache|dentist|migraine|headache|cramps?|sunburn|kidney stones?|sprain\w*|blister\w*|ear infection|sore throat|stomach ?ache|back pain|knee|ankle|wisdom teeth|food poisoning|the flu|hiccups|labor|contractions|surgery|hangover|hungover|flu|noise|construction|neighbou?rs? music|rain|snow|heat wave|drilling|barking|car alarm|hay fever|allerg\w+)",
        unless=r"(?:suicid\w+|kill|life|anymore i|no one|forever|hate myself|die tonight|pills)",
    ),
    # breaking up, leaving a job: "i want to end it with him", "i cant do this job anymore"
    _guard(
        "ending-else",
        r"^(?:end-it|go-on|make-it-stop|not-worth|no-reason|be-here|no-future|end-life)",
        sentence=r"(?:with (?:him|her|them|my (?:boyfriend|girlfriend|husband|wife|partner|ex|fiance))|relationship|marriage|engagement|dating|friendship|the affair|subscription|contract|lease|(?:this|my|the|that) (?:job|company|position|project|diet|class|course|degree|team|marathon|race|workout|shift|internship|major|game|campaign|band|phone|laptop|gym|commute|essay|thesis|puzzle|trip|drive|hike)|break up|breaking up|divorce|the (?:meeting|call|debate|argument|fight|war|game|strike|semester|season|term|date|drama|conversation)|our (?:friendship|relationship)|at work|at this (?:job|company|school)|working (?:here|there|for|like)|roommates?|overtime|(?:living|live|stay|staying|be|being) (?:here|there|in (?:this|that|the|my) (?:town|city|house|apartment|dorm|place|state|country|neighbou?rhood|office))|this (?:town|city|dorm|apartment))",
        unless=r"(?:suicid\w+|kill|die|dying|my life|myself|pills|alive|goodbye|tonight|no one would|this world|to live)",
    ),
    # bungee, pools, parachutes, work at heights
    _guard(
        "leisure",
        r"^(?:jump|at-the-edge|drive|means-near|wrists)",
        message=r"(?:bungee|parachut\w+|skydiv\w+|pool|swim\w*|lake day|trampoline|vacation|holiday|diving board|cliff diving|zip ?line|paraglid\w+|picnic|fishing|sunset|photo\w*|view|tourist|roofer|roofing|shingles|window cleaner|parkour|amusement|ride|conclusions|ship|bandwagon|hunting|fish|camping|cook\w*|whittl\w+|carpent\w+|concert|fireworks|stars|barbecue|party|band|river walk|jog\w*|kayak\w*)",
        unless=r"(?:suicid\w+|end (?:it|my)|kill|die|never come back|no one|anymore|goodbye|pain|dead|want to jump off (?:a|the|this) (?:bridge|roof|building))",
    ),
    # a hypothesis about others: "why do people commit suicide"
    _guard(
        "about-others",
        r"^(?:suicid|means-asked|self-harm)",
        sentence=r"(?:why (?:do|would|does|did) (?:people|someone|anyone|he|she|they|so many|teens|celebrities)|people who|someone who|those who|how (?:do|can|could|should) (?:i|we|you) (?:help|support|talk to|comfort|prevent|stop|deal with (?:a|my)|be there for)|(?:friend|brother|sister|cousin|uncle|aunt|mother|father|mom|dad|neighbou?r|classmate|coworker|colleague|boyfriend|girlfriend|roommate|son|daughter|nephew|niece|student|patient|ex|teacher|celebrity|singer|actor|he|she|they|husband|wife|grandfather|grandmother) (?:[a-z]+ ){0,3}?(?:committed|attempted|died|took|tried|has|had|is|was|are|were|who|told|admitted|killed|lost|shared|confessed|struggles?|struggled|opened|of|by|from|through|to) (?:[a-z]+ ){0,6}?(?:suicid\w*|self harm\w*)|(?:lost|losing|loss of) (?:[a-z]+ ){0,6}?(?:to|from|by) suicide|suicide survivor|prevention|awareness|hotline|crisis line|training|news|statistics)",
        unless=r"i (?:am|feel|have been|want|think i am|get|also|too) (?:[a-z]+ ){0,3}?(?:suicidal|self harm\w*|commit|thinking)|too|same|like (?:him|her|them)|my own|i need",
    ),
    # medicine as prescribed
    _guard(
        "as-prescribed",
        r"^(?:overdose|poison|other-now|means-near)",
        message=r"(?:vitamins?|antibiotics|as prescribed|like (?:the|my) doctor|for my (?:cold|flu|allergies|headache|infection|back)|probiotics|supplements?|morning (?:pills|medication)|multivitamin|melatonin|gummies|on time today|refill|pharmacy|packed|suitcase|for the (?:trip|week)|flu medicine|took my (?:medication|medicine|pills) (?:today|this morning|on time|and feel|like))",
        unless=r"(?:die|kill|over(?:dos\w*)|too many|whole bottle|goodbye|end it|not wake|entire bottle)",
    ),
    # "my boss will kill me", "my trainer is trying to kill me"
    _guard(
        "only-anger",
        r"^threat$",
        message=r"(?s:.)",
        unless=r"(?:scared|afraid|terrified|threat\w*|gun|knife|police|hiding|hide|chok\w+|hits|beat\w*|drunk|help|abus\w+|for real|not joking|locked|door|found me|outside|now|stalk\w*|coming|weapon|bruis\w+|violent)",
    ),
    _guard(
        "only-teasing",
        r"^(?:threat-said|violence|other-violence|weapon|violence-often|threat-feared|unsafe|threatened)",
        message=r"(?:trainer|coach|workout|gym|toddlers?|puppy|kitten|my (?:cat|dog|baby)|\d+ (?:month|year) old|two year old|three year old|haha|pillow|in (?:the|a|this|our|my) (?:game|match|ring|tournament|dream|nightmare|movie|film|book|show|boxing|level)|sparring|karate|boxing|chess|tickl\w+|wrestl\w+|minecraft|fortnite|video game|mario|at (?:chess|poker|tennis|golf|ping pong|basketball|pool|scrabble|monopoly|cards|everything|games?)|water balloon|snowballs?|nerf|paintball|laser tag|play ?fight\w*|dodgeball|piggyback|seat|horn|news|years ago|when i was (?:a|little|young|\d+|in)|used to|back then|as a (?:kid|child)|my (?:mom|dad|parents|wife|boss|mother|husband|girlfriend|boyfriend|sister|brother) (?:is going to|will|would|s going to) kill me)",
        unless=r"(?:right now he|help me|police|bleeding|he has a (?:gun|knife)|for real|hospital|again last night)",
    ),
    # "im going to kill my brother if he eats my fries again", spiders, weeds, games
    _guard(
        "only-annoyed",
        r"^(?:intent-kill|intent-thought|intent-revenge|rage)",
        message=r"(?:(?:if|for|when|because|next time|after) (?:he|she|they|[a-z]+ing|my [a-z]+|that [a-z]+|someone|i (?:see|find out|get home|get back|get my hands))\b[^.]*(?:\b(?:eat|ate|eats|eating|took|take|takes|taking|borrow\w*|forg[eo]t\w*|spoil\w*|leav\w+|left|touch\w*|use[sd]?|using|finish\w*|wake[s]?|woke|waking|late|cancel\w*|bail\w*|steal\w*|stole|mess\w*|ruin\w*|los[est]+\w*|snor\w+|chew\w*|sing\w*|tell\w*|told|does not|do not|did not|drink\w*|drank|open\w*|unplug\w*|delet\w+|scratch\w*|dent\w*|post\w*|mak\w+ (?:me|us) (?:late|watch|go|wait)|play\w*|talk\w*|text\w*|not texting|shrink|shrank|shrunk|dish\w*|charger|fries|snacks?|sweater|hoodie|pizza|leftovers|password|thermostat|blanket|remote|cheat\w* at|call me|hum\w*|whistl\w*))|spiders?|bugs?|ants|mosquito\w*|roach\w*|wasps?|weeds|zombies?|spider|mice|rats?|haha|in (?:the|this|a|my) (?:game|level|round|match)|respawn\w*|npc\w*|boss fight|minecraft|fortnite|chess|opponent|team ?mate|hurt (?:him|her|them|anyone|people|someone) (?:by|if i (?:tell|break|leave|say|am honest)|when i (?:tell|break|say|leave))|break(?:ing)? up|feelings|telling (?:him|her|them) the truth|honest with|surprise party|the truth)",
        unless=r"(?:gun|knife|blood|for real|not joking|tonight i|serious\w*|stab|in (?:his|her|their) sleep|to death|plan\w*|murder|shoot|police|prison|jail)",
    ),
    # the writer fears to hurt somebody's heart
    _guard("hurt-feelings", r"^(?:intent|rage)", sentence=r"(?:do not|did not|never|not) (?:[a-z]+ ){0,3}?(?:want|mean|meant|like|wish|trying|going|intend) (?:[a-z]+ ){0,2}?(?:to )?(?:[a-z]+ )?(?:hurt|harm|kill|hurting|attack)[^~]*", unless=r"(?:but i|afraid|scared|urge|thoughts)"),
    _guard("grief-wish", r"^(?:hit-me|not-safe)", sentence=r"(?:rest in peace|watching over)[^~]*", unless=r"(?:join|be with|die|soon)"),
)  # fmt: skip

ENGLISH = Language(IDIOMS, (*EMERGENCIES, *DIRECT, *INDIRECT), HINTS, GUARDS)
