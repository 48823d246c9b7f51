"""Talk to a model behind an OpenAI-compatible server: python examples/endpoint.py MODEL BASE_URL

The key, if the server wants one, is in LISTENWELL_API_KEY. Signs of a crisis are answered here, and not sent.
"""

import sys

import listenwell

model, base_url = sys.argv[1:]
bot = listenwell.load(f"openai:{model}", base_url=base_url)
print(bot.reply(["I lost my job today"]).text)
print(bot.reply(["I lost my job today"], intent="questioning").text)
