#include "core/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

const std::vector<ChatMessage> kChat = {{"system", "You are a helpful assistant"},
                                        {"user", "Hello"},
                                        {"assistant", "Hi there"},
                                        {"user", "Who are you"}};

std::string written(const char* name, const std::vector<ChatMessage>& chat = kChat) {
  const auto text = ChatTemplate::named(name, vocab())->apply(chat);
  return text.ok() ? *text : text.error().line();
}

// As the families' own templates give it.
TEST(ChatTemplate, WritesEachFamilysForm) {
  EXPECT_EQ(written("chatml"),
            "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\nHi there<|im_end|>\n<|im_start|>user\nWho are you<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(written("llama2"),
            "[INST] <<SYS>>\nYou are a helpful assistant\n<</SYS>>\n\nHello [/INST] Hi there </s>"
            "<s>[INST] Who are you [/INST]");
  EXPECT_EQ(written("llama3"),
            "<|start_header_id|>system<|end_header_id|>\n\nYou are a helpful assistant<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHi there<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWho are you<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(written("mistral-v1"),
            "[INST] You are a helpful assistant\n\nHello [/INST] Hi there</s>[INST] Who are you [/INST]");
  EXPECT_EQ(written("mistral-v3"),
            "[INST] You are a helpful assistant\n\nHello[/INST] Hi there</s>[INST] Who are you[/INST]");
  EXPECT_EQ(written("mistral-v7"),
            "[SYSTEM_PROMPT] You are a helpful assistant[/SYSTEM_PROMPT][INST] Hello[/INST] Hi there</s>"
            "[INST] Who are you[/INST]");
  EXPECT_EQ(written("zephyr"),
            "<|system|>\nYou are a helpful assistant</s>\n<|user|>\nHello</s>\n<|assistant|>\nHi there</s>\n"
            "<|user|>\nWho are you</s>\n<|assistant|>\n");
  EXPECT_EQ(
      written("vicuna"),
      "You are a helpful assistant\n\nUSER: Hello\nASSISTANT: Hi there</s>\nUSER: Who are you\nASSISTANT:");
  EXPECT_EQ(
      written("deepseek2"),
      "You are a helpful assistant\n\nUser: Hello\n\nAssistant: Hi there</s>User: Who are you\n\nAssistant:");
  EXPECT_EQ(written("falcon"),
            "System: You are a helpful assistant\nUser: Hello\nFalcon: Hi there\nUser: Who are you\nFalcon:");
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
  EXPECT_EQ(family("{{ '[INST] ' + content + ' [/INST]' }}"), "mistral-v1");
  EXPECT_EQ(family("{{ '[AVAILABLE_TOOLS]' }}{{ '[INST] ' }}"), "mistral-v3");
  EXPECT_EQ(family("{{ '<|user|>\n' + message['content'] + eos_token }}"), "zephyr");
  EXPECT_THAT(
      family("{{ 'Q: ' }}"),
      HasSubstr("is of no known family; give the one that is meant with --chat-template: chatml, llama3"));
  EXPECT_THAT(family(""), HasSubstr("the model brings none; give one with --chat-template: chatml"));
}

TEST(ChatTemplate, RefusesWhatAFamilyCannotSay) {
  EXPECT_THAT(ChatTemplate::named("chatmk", vocab()).error().line(),
              HasSubstr("there is no 'chatmk'; known are chatml, llama3"));
  EXPECT_EQ(written("chatml", {}), "request: messages: there are none");
  EXPECT_EQ(written("chatml", {{"tool", "x"}}),
            "request: messages[0]: role 'tool' is none of system, user, assistant");
  EXPECT_THAT(written("llama2", {{"user", "a"}, {"system", "b"}}),
              HasSubstr("messages[1]: the system speaks first"));
  EXPECT_THAT(written("mistral-v1", {{"system", "b"}}), HasSubstr("a user must follow"));
}

TEST(ChatTemplate, EveryFamilyTakesAPlainQuestion) {
  for (const std::string_view name : ChatTemplate::names())
    EXPECT_THAT(written(std::string(name).c_str(), {{"user", "What?"}}), HasSubstr("What?")) << name;
}

}  // namespace
}  // namespace tierd
