#include "core/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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

// What published templates give (tests/golden/make_chat_golden.py).
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

// The templates themselves are their models': by hand, with a folder of them.
TEST(ChatTemplate, KnowsPublishedTemplates) {
  const char* folder = std::getenv("TIERD_CHAT_TEMPLATES");
  if (folder == nullptr) GTEST_SKIP() << "TIERD_CHAT_TEMPLATES names no folder";
  for (const auto& model : golden()) {
    const std::string name = model["model"];
    std::ifstream file(std::string(folder) + "/" + name + ".jinja");
    std::stringstream text;
    text << file.rdbuf();
    const auto family = ChatTemplate::of(vocab(text.str()));
    ASSERT_TRUE(family.ok()) << name << ": " << family.error().line();
    EXPECT_EQ(family->name(), model["family"].get<std::string>()) << name;
  }
}

// Families of which no published template is at hand.
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

TEST(ChatTemplate, IsKnownByWhatTheModelsTemplateContains) {
  const auto family = [](const char* text) {
    const auto found = ChatTemplate::of(vocab(text));
    return found.ok() ? std::string(found->name()) : found.error().line();
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
  // DeepSeek V3.1: a form that is not known, and not that of V3.
  EXPECT_THAT(family("{{'<｜User｜>' + m}}{{'<｜Assistant｜>'}}{{'<think>'}}"),
              HasSubstr("of no known family"));
  EXPECT_THAT(
      family("{{ 'Q: ' }}"),
      HasSubstr("is of no known family; give the one that is meant with --chat-template: chatml, deepseek"));
  EXPECT_THAT(family(""), HasSubstr("the model brings none; give one with --chat-template: chatml"));
}

TEST(ChatTemplate, RefusesWhatAFamilyCannotSay) {
  EXPECT_THAT(ChatTemplate::named("chatmk", vocab()).error().line(),
              HasSubstr("there is no 'chatmk'; known are chatml, deepseek"));
  EXPECT_EQ(written("chatml", {}), "request: messages: there are none");
  EXPECT_EQ(written("chatml", {{"critic", "x"}}),
            "request: messages[0]: role 'critic' is none of system, user, assistant, tool");
  EXPECT_THAT(written("llama2", {{"user", "a"}, {"system", "b"}}),
              HasSubstr("messages[1]: the system speaks first"));
  EXPECT_THAT(written("mistral-v1", {{"system", "b"}}), HasSubstr("a user must follow"));
  EXPECT_THAT(written("mistral", {{"system", "b"}, {"user", "a"}}),
              HasSubstr("a mistral model knows no system"));
}

TEST(ChatTemplate, EveryFamilyTakesAPlainQuestion) {
  for (const std::string_view name : ChatTemplate::names())
    EXPECT_THAT(written(name, {{"user", "What?"}}), HasSubstr("What?")) << name;
}

}  // namespace
}  // namespace tierd
