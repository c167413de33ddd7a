#include "core/model/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/checksum.h"
#include "core/model/text/jinja_text.h"

namespace tierd {
namespace {

using testing::HasSubstr;

Vocab vocab(std::string chat_template = "") {
  Vocab v;
  v.pieces = {"<unk>", "<s>", "</s>"};
  v.bos = 1, v.eos = 2;
  v.chat_template = std::move(chat_template);
  return v;
}

std::string written(std::string_view name, const std::vector<ChatMessage>& chat) {
  const auto text = ChatTemplate::named(name, vocab())->apply(chat);
  return text.ok() ? *text : text.error().line();
}

nlohmann::json golden() {
  return nlohmann::json::parse(std::ifstream(TIERD_SOURCE_DIR "/tests/golden/chat/golden.json"));
}

// Compares with the texts of published templates (tests/golden/make_chat_golden.py).
TEST(ChatTemplate, WritesWhatModelsOwnTemplatesWrite) {
  for (const auto& model : golden()) {
    const auto family = ChatTemplate::named(model["family"].get<std::string>(), vocab());
    ASSERT_TRUE(family.ok()) << family.error().line();
    for (const auto& chat : model["chats"]) {
      std::vector<ChatMessage> messages;
      for (const auto& one : chat["messages"]) messages.push_back({one["role"], one["content"]});
      const auto text = family->apply(messages);
      if (chat["text"].is_null()) {
        EXPECT_FALSE(text.ok()) << model["model"] << ", " << chat["chat"];
      } else {
        ASSERT_TRUE(text.ok()) << model["model"] << ", " << chat["chat"] << ": " << text.error().line();
        EXPECT_EQ(*text, chat["text"]) << model["model"] << ", " << chat["chat"];
      }
    }
  }
}

// The templates belong to their models. Run by hand with a folder of them.
TEST(ChatTemplate, KnowsPublishedTemplates) {
  const char* folder = std::getenv("TIERD_CHAT_TEMPLATES");
  if (folder == nullptr) GTEST_SKIP() << "TIERD_CHAT_TEMPLATES names no folder";
  for (const auto& model : golden()) {
    const std::string name = model["model"];
    std::ifstream file(std::string(folder) + "/" + name + ".jinja");
    std::stringstream text;
    text << file.rdbuf();
    const auto family = ChatTemplate::of(vocab(text.str()));
    const std::string found = family.ok() ? std::string(family->name()) : family.error().line();
    EXPECT_THAT(found, HasSubstr(model["family"].get<std::string>())) << name;
  }
}

// Every chat of every recognised template is written as by Jinja, or refused. Run by hand with the output of
// tests/golden/judge_chat_templates.py.
TEST(ChatTemplate, JudgedChatsAreWrittenAsJinjaWritesThem) {
  const char* file = std::getenv("TIERD_CHATS");
  if (file == nullptr) GTEST_SKIP() << "TIERD_CHATS names no file";
  for (const auto& one : nlohmann::json::parse(std::ifstream(file))) {
    Vocab v = vocab(one["template"].get<std::string>());
    v.pieces = {"<unk>", one["bos"], one["eos"]};
    const auto form = ChatTemplate::of(v);
    if (!form.ok()) {
      std::printf("%s: %s, %s\n", one["model"].get<std::string>().c_str(),
                  checksum_text(checksum(canonical_jinja(v.chat_template))).c_str(),
                  form.error().line().c_str());
      continue;
    }
    size_t written = 0;
    for (const auto& chat : one["chats"]) {
      std::vector<ChatMessage> messages;
      for (const auto& message : chat["messages"]) messages.push_back({message["role"], message["content"]});
      const auto text = form->apply(messages);
      if (!text.ok()) continue;
      ++written;
      EXPECT_EQ(nlohmann::json(*text), chat["text"]) << one["model"] << chat["messages"];
    }
    EXPECT_GT(written, 50u) << one["model"];
  }
}

// Families without a published template at hand.
TEST(ChatTemplate, WritesTheOtherFamiliesForms) {
  const std::vector<ChatMessage> chat = {{"system", "You are a helpful assistant"},
                                         {"user", "Hello"},
                                         {"assistant", "Hi there"},
                                         {"user", "Who are you"}};
  EXPECT_EQ(written("zephyr", chat),
            "<|system|>\nYou are a helpful assistant</s>\n<|user|>\nHello</s>\n<|assistant|>\nHi there</s>\n"
            "<|user|>\nWho are you</s>\n<|assistant|>\n");
  EXPECT_EQ(written("tulu", chat),
            "<|system|>\nYou are a helpful assistant\n<|user|>\nHello\n<|assistant|>\nHi there</s>\n"
            "<|user|>\nWho are you\n<|assistant|>\n");
  EXPECT_EQ(written("falcon", chat),
            "System: You are a helpful assistant\nUser: Hello\nFalcon: Hi there\nUser: Who are you\nFalcon:");
  EXPECT_EQ(written("deepseek3", chat),
            "You are a helpful assistant<｜User｜>Hello<｜Assistant｜>Hi "
            "there<｜end▁of▁sentence｜><｜User｜>Who are "
            "you<｜Assistant｜>");
  EXPECT_EQ(written("qwen2", {{"user", "Hello"}}),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(written("qwq", {{"user", "Hello"}}),
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n");
}

TEST(ChatTemplate, OneThatIsNotKnownWholeNamesTheFamilyThatItResembles) {
  const auto family = [](const char* text) {
    const auto found = ChatTemplate::of(vocab(text));
    if (found.ok()) return "known as " + std::string(found->name());
    const std::string line = found.error().line();
    const size_t at = line.find("--chat-template ");
    if (line.find("not identical to a known one") == std::string::npos) return line;
    return line.substr(at + 16, line.find(' ', at + 16) - at - 16);
  };
  EXPECT_EQ(
      family("{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>'}}"),
      "chatml");
  EXPECT_EQ(family("{{ '<|start_header_id|>' + role + '<|end_header_id|>' }}"), "llama3");
  EXPECT_EQ(family("{{ bos_token + '[INST] ' + '<<SYS>>' }}"), "llama2");
  EXPECT_EQ(family("{{ '[INST] ' + content + ' [/INST]' }}"), "mistral");
  EXPECT_EQ(family("{{ ' [INST] ' + content + ' [/INST]' }}"), "mistral-v1");
  EXPECT_EQ(family("{{ '[AVAILABLE_TOOLS]' }}{{ '[INST] ' }}"), "mistral-v3");
  EXPECT_EQ(family("{{ \"[AVAILABLE_TOOLS]\" }}{{ \"[INST]\" }}"), "mistral-v3-tekken");
  EXPECT_EQ(family("{{ '<|user|>\n' + message['content'] + eos_token }}"), "zephyr");
  EXPECT_EQ(family("{{ '<|user|>\\n' + message['content'] + '\\n' }}"), "tulu");
  EXPECT_EQ(family("{{ '<|im_start|>' + '<|im_sep|>' + '<|im_end|>' }}"), "phi4");
  EXPECT_EQ(family("{{'<｜User｜>' + m}}{{'<｜Assistant｜>'}}"), "deepseek3");
  // DeepSeek V3.1: an unknown form, not that of V3.
  EXPECT_THAT(family("{{'<｜User｜>' + m}}{{'<｜Assistant｜>'}}{{'<think>'}}"),
              HasSubstr("template is not known"));
  EXPECT_THAT(family("{{ 'Q: ' }}"), HasSubstr("the model's template is not known; name the one to use with "
                                               "--chat-template, one of chatml, deepseek"));
  EXPECT_THAT(family(""), HasSubstr("the model has none; name one with --chat-template, one of chatml"));
}

constexpr const char* kChatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif "
    "%}";

std::string known(const std::string& text) {
  const auto found = ChatTemplate::of(vocab(text));
  return found.ok() ? std::string(found->name()) : "";
}

TEST(ChatTemplate, APublishedOneIsKnownHoweverItIsLaidOut) {
  EXPECT_EQ(known(kChatml), "chatml");
  EXPECT_EQ(known("{%- for message in messages -%}\r\n  {{- \"<|im_start|>\" + message[\"role\"] + '\\n' + "
                  "message['content']+'<|im_end|>' + '\\n' }}{# a turn #}\n{% endfor %}\n"
                  "{% if add_generation_prompt %}\n  {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n"),
            "chatml");
  // One more character makes it another template.
  EXPECT_EQ(known(std::string("x") + kChatml), "");
  std::string other = kChatml;
  other.replace(other.find("assistant"), 9, "Assistant");
  EXPECT_EQ(known(other), "");
}

TEST(ChatTemplate, TheModelsOwnHasADefaultSystemOfItsOwn) {
  const std::string smollm =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
      "'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
      "Face<|im_end|>\n' }}"
      "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  const auto form = ChatTemplate::of(vocab(smollm));
  ASSERT_TRUE(form.ok()) << form.error().line();
  EXPECT_EQ(
      *form->apply(std::vector<ChatMessage>{{"user", "hi"}}),
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  std::string others = smollm;
  others.replace(others.find("SmolLM"), 6, "Klingon");
  EXPECT_EQ(known(others), "") << "and another system is another template";
}

TEST(ChatTemplate, TheModelsOwnRefusesOrdersThatItDoesNotKnow) {
  const auto form = ChatTemplate::of(
      vocab("{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % "
            "2 == 0) "
            "%}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') "
            "}}{% endif "
            "%}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif "
            "message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ "
            "raise_exception('Only "
            "user and assistant roles are supported!') }}{% endif %}{% endfor %}"));
  ASSERT_TRUE(form.ok()) << form.error().line();
  const std::vector<ChatMessage> turns = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
  EXPECT_EQ(*form->apply(turns), "[INST] a [/INST]b</s>[INST] c [/INST]");
  const std::vector<ChatMessage> twice = {{"user", "a"}, {"user", "c"}};
  EXPECT_THAT(form->apply(twice).error().line(),
              HasSubstr("messages[1]: user and assistant do not alternate"));
  EXPECT_EQ(*ChatTemplate::named("mistral", vocab())->apply(twice), "[INST] a [/INST][INST] c [/INST]");
}

TEST(ChatTemplate, RefusesWhatAFamilyCannotSay) {
  EXPECT_THAT(ChatTemplate::named("chatmk", vocab()).error().line(),
              HasSubstr("'chatmk' is not a chat template; expected one of chatml, deepseek"));
  EXPECT_EQ(written("chatml", {}), "request: messages is empty; expected at least one");
  EXPECT_EQ(written("chatml", {{"critic", "x"}}),
            "request: messages[0]: role 'critic', expected system, user, assistant or tool");
  EXPECT_THAT(written("llama2", {{"user", "a"}, {"system", "b"}}),
              HasSubstr("supports a system message as the first one only"));
  EXPECT_THAT(written("mistral-v1", {{"system", "b"}}),
              HasSubstr("requires a user message after the system message"));
  EXPECT_THAT(written("mistral", {{"system", "b"}, {"user", "a"}}),
              HasSubstr("a mistral model does not support system messages"));
}

TEST(ChatTemplate, EveryFamilyTakesAPlainQuestion) {
  for (const std::string_view name : ChatTemplate::names())
    EXPECT_THAT(written(name, {{"user", "What?"}}), HasSubstr("What?")) << name;
}

}  // namespace
}  // namespace tierd
