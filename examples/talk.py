"""Talk to a system from Python and print the reasons for its reply: python examples/talk.py [SYSTEM]"""

import sys

import listenwell

bot = listenwell.load(sys.argv[1] if len(sys.argv) > 1 else None)
reply = bot.reply(["I lost my job today"])
print(reply.text)
print("emotion:", reply.emotion, "| intent:", reply.label)
for name, reason in reply.reasons.items():
    print(f"{name}: {reason}")
