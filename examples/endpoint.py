"""Talk to a model behind an OpenAI-compatible server: python examples/endpoint.py MODEL BASE_URL

The API key, if the server needs one, is read from LISTENWELL_API_KEY. Messages with signs of a crisis are answered
locally and not sent.
"""

import sys

import listenwell

model, base_url = sys.argv[1:]
bot = listenwell.load(f"openai:{model}", base_url=base_url)
print(bot.reply(["I lost my job today"]).text)
print(bot.reply(["I lost my job today"], intent="questioning").text)
