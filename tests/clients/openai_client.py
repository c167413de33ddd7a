"""The official client does what its users do; whatever does not hold ends it."""
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="sesame", max_retries=0)

models = client.models.list()
model = models.data[0].id
print("models:", [m.id for m in models.data])

whole = client.completions.create(model=model, prompt="First Citizen:", max_tokens=16, temperature=0)
print("completion:", repr(whole.choices[0].text), whole.choices[0].finish_reason, whole.usage)
assert whole.usage.completion_tokens == 16 and whole.choices[0].finish_reason == "length"

streamed = ""
usage = None
for chunk in client.completions.create(model=model, prompt="First Citizen:", max_tokens=16, temperature=0, stream=True,
                                       stream_options={"include_usage": True}):
    if chunk.choices:
        streamed += chunk.choices[0].text
    usage = chunk.usage or usage
assert streamed == whole.choices[0].text, streamed
assert usage.completion_tokens == 16
print("stream: the same; usage", usage)

several = client.completions.create(model=model, prompt=["The", "And"], max_tokens=4, n=2, temperature=1.0, seed=3)
assert [c.index for c in several.choices] == [0, 1, 2, 3]
again = client.completions.create(model=model, prompt=["The", "And"], max_tokens=4, n=2, temperature=1.0, seed=3)
assert [c.text for c in several.choices] == [c.text for c in again.choices]
print("n and seed:", [c.text for c in several.choices])

scored = client.completions.create(model=model, prompt="First Citizen:", max_tokens=1, temperature=0, echo=True, logprobs=3)
logprobs = scored.choices[0].logprobs
assert logprobs.token_logprobs[0] is None and len(logprobs.tokens) == len(logprobs.text_offset)
assert all(len(top) <= 4 for top in logprobs.top_logprobs[1:])
print("echo and logprobs:", list(zip(logprobs.tokens, logprobs.token_logprobs))[:4])

stop = whole.choices[0].text[6:9]
stopped = client.completions.create(model=model, prompt="First Citizen:", max_tokens=16, temperature=0, stop=[stop])
assert stopped.choices[0].text == whole.choices[0].text.split(stop)[0] and stopped.choices[0].finish_reason == "stop"
print("stop:", repr(stopped.choices[0].text))

messages = [{"role": "system", "content": "Speak as a king."}, {"role": "user", "content": "Who comes?"}]
chat = client.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0, logprobs=True,
                                      top_logprobs=2)
print("chat:", chat.choices[0].message.role, repr(chat.choices[0].message.content))
assert len(chat.choices[0].logprobs.content) == 12
content, roles = "", 0
with client.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0, stream=True) as stream:
    for chunk in stream:
        delta = chunk.choices[0].delta
        roles += delta.role is not None
        content += delta.content or ""
assert content == chat.choices[0].message.content and roles == 1
print("chat stream: the same")

for kind, ask in [
    (openai.BadRequestError, lambda: client.completions.create(model=model, prompt="a", temperature=-1)),
    (openai.BadRequestError, lambda: client.completions.create(model=model, prompt=[5] * 100000)),
    (openai.InternalServerError, lambda: client.embeddings.create(model=model, input="x")),
    (openai.NotFoundError, lambda: client.responses.create(model=model, input="x")),
    (openai.AuthenticationError,
     lambda: openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="no", max_retries=0).completions.create(model=model, prompt="a")),
]:
    try:
        ask()
        raise SystemExit(f"{kind.__name__} was expected")
    except kind as error:
        print("error:", error.status_code, error.body)
print("openai", openai.__version__, "is content")
