#include "core/model/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tierd {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

Vocab vocab(std::string chat_template = "") {
  Vocab v;
  v.pieces = {"<unk>", "<s>", "</s>"};
  v.unknown = 0, v.bos = 1, v.eos = 2;
  v.add_bos = false;
  v.chat_template = std::move(chat_template);
  return v;
}

std::string text_of(const Result<ChatTemplate>& form, const ChatInput& input) {
  if (!form.ok()) return form.error().line();
  const auto text = form->apply(input);
  return text.ok() ? *text : text.error().line();
}

using Chat = std::vector<std::pair<std::string, std::string>>;  // roles and contents

ordered_json messages_of(const Chat& chat) {
  ordered_json messages = ordered_json::array();
  for (const auto& [role, content] : chat) messages.push_back({{"role", role}, {"content", content}});
  return messages;
}

std::string written(std::string_view name, const Chat& chat) {
  const ordered_json messages = messages_of(chat);
  return text_of(ChatTemplate::named(name, vocab()), {messages});
}

std::string own(const std::string& source, const Chat& chat) {
  const ordered_json messages = messages_of(chat);
  return text_of(ChatTemplate::of(vocab(source)), {messages});
}

ordered_json golden(const char* file) {
  return ordered_json::parse(std::ifstream(std::string(TIERD_SOURCE_DIR "/tests/golden/") + file));
}

// The date of tests/golden/make_template_golden.py: Saturday, 4 July 2026, 15:06:07.
std::tm golden_date() {
  std::tm date{};
  date.tm_year = 126, date.tm_mon = 6, date.tm_mday = 4, date.tm_hour = 15, date.tm_min = 6, date.tm_sec = 7;
  date.tm_wday = 6, date.tm_yday = 184;
  return date;
}

Result<std::string> rendered(const ChatTemplate& form, const ordered_json& chat) {
  const std::tm date = golden_date();
  ChatInput input{chat["messages"]};
  if (!chat["tools"].is_null()) input.tools = &chat["tools"];
  input.variables = &chat["variables"];
  input.begins_answer = chat["add_generation_prompt"];
  input.date = &date;
  return form.apply(input);
}

// Compares with transformers' texts (tests/golden/make_template_golden.py).
TEST(ChatTemplate, TemplatesOfTheFamiliesStylesAreWrittenAsByTransformers) {
  const ordered_json all = golden("templates/golden.json");
  EXPECT_EQ(all["texts"].size(), 12u);
  for (const auto& [name, texts] : all["texts"].items()) {
    std::stringstream source;
    source << std::ifstream(TIERD_SOURCE_DIR "/tests/golden/templates/" + name + ".jinja").rdbuf();
    const auto form = ChatTemplate::of(vocab(source.str()));
    ASSERT_TRUE(form.ok()) << name << ": " << form.error().line();
    ASSERT_EQ(texts.size(), all["chats"].size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const ordered_json& chat = all["chats"][i];
      const auto text = rendered(*form, chat);
      if (texts[i].is_string()) {
        ASSERT_TRUE(text.ok()) << name << ", " << chat["chat"] << ": " << text.error().line();
        EXPECT_EQ(*text, texts[i]) << name << ", " << chat["chat"];
      } else {
        ASSERT_FALSE(text.ok()) << name << ", " << chat["chat"] << ": " << *text;
        const ordered_json& why = texts[i]["raised"];
        if (why.is_string()) {
          EXPECT_THAT(text.error().detail, HasSubstr(why.get<std::string>()));
        }
      }
    }
  }
}

struct Counts {
  size_t compared = 0, equal = 0, refused = 0, different = 0;
};

void compare(const ordered_json& model, Counts& counts) {
  const auto form = ChatTemplate::of(vocab(model["template"].get<std::string>()));
  for (const auto& chat : model["chats"]) {
    ++counts.compared;
    const auto text = form.ok() ? rendered(*form, chat) : Result<std::string>(form.error());
    const ordered_json& expected = chat["text"];
    const ordered_json raised = chat.value("raised", ordered_json());
    const bool alike = raised.is_null() ||
                       (!text.ok() && text.error().detail.find(raised.get<std::string>().substr(0, 40)) !=
                                          std::string::npos);
    if (expected.is_string() && text.ok() && *text == expected.get<std::string>()) {
      ++counts.equal;
    } else if (expected.is_null() && !text.ok() && alike) {
      ++counts.refused;
    } else {
      ++counts.different;
      ADD_FAILURE() << model["name"] << ", " << chat["chat"] << "\n  found    "
                    << (text.ok()
                            ? ordered_json(*text).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                            : text.error().line())
                    << "\n  expected " << (expected.is_null() ? chat["why"] : expected);
    }
  }
}

// Templates belong to their models. Run by make_template_golden.py with a folder of them.
TEST(ChatTemplate, TemplatesOfAFolderAreWrittenAsByTransformers) {
  const char* const file = std::getenv("TIERD_TEMPLATE_CASES");
  if (file == nullptr) GTEST_SKIP() << "TIERD_TEMPLATE_CASES names no file";
  Counts counts;
  const ordered_json models = ordered_json::parse(std::ifstream(file));
  for (const auto& model : models) compare(model, counts);
  std::printf("%zu templates, %zu chats compared: %zu equal, %zu refused alike, %zu different\n",
              models.size(), counts.compared, counts.equal, counts.refused, counts.different);
}

// Compares with the texts of published templates (tests/golden/make_chat_golden.py).
TEST(ChatTemplate, NamedOnesWriteWhatModelsOwnTemplatesWrite) {
  for (const auto& model : golden("chat/golden.json")) {
    const auto form = ChatTemplate::named(model["family"].get<std::string>(), vocab());
    ASSERT_TRUE(form.ok()) << form.error().line();
    for (const auto& chat : model["chats"]) {
      Vocab adds_bos = vocab();
      adds_bos.add_bos = true;
      const auto text =
          ChatTemplate::named(model["family"].get<std::string>(), adds_bos)->apply({chat["messages"]});
      if (chat["text"].is_null()) {
        EXPECT_FALSE(text.ok()) << model["model"] << ", " << chat["chat"];
      } else {
        ASSERT_TRUE(text.ok()) << model["model"] << ", " << chat["chat"] << ": " << text.error().line();
        EXPECT_EQ(*text, chat["text"]) << model["model"] << ", " << chat["chat"];
      }
    }
  }
}

// Families without a published template at hand.
TEST(ChatTemplate, WritesTheOtherFamiliesForms) {
  const Chat chat = {{"system", "You are a helpful assistant"},
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
  EXPECT_EQ(written("llama2", chat),
            "<s>[INST] <<SYS>>\nYou are a helpful assistant\n<</SYS>>\n\nHello [/INST] Hi there "
            "</s><s>[INST] Who are you [/INST]");
  EXPECT_EQ(written("qwen2", {{"user", "Hello"}}),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(written("qwq", {{"user", "Hello"}}),
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n");
  EXPECT_EQ(written("qwen3", {{"user", "x"}, {"tool", "A"}, {"tool", "B"}}),
            "<|im_start|>user\nx<|im_end|>\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n"
            "<tool_response>\nB\n</tool_response><|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, NamedOnesRefuseWhatTheirFamilyCannotSay) {
  EXPECT_THAT(ChatTemplate::named("chatmk", vocab()).error().line(),
              HasSubstr("'chatmk' is not a chat template; expected one of chatml, deepseek"));
  EXPECT_EQ(written("chatml", {}), "request: messages is empty; expected at least one");
  EXPECT_THAT(written("chatml", {{"critic", "x"}}),
              HasSubstr("a message of the role 'critic' is not supported"));
  EXPECT_THAT(written("vicuna", {{"tool", "x"}}), HasSubstr("a message of the role 'tool' is not supported"));
  EXPECT_THAT(written("llama2", {{"user", "a"}, {"system", "b"}}),
              HasSubstr("a system message is supported as the first message only"));
  EXPECT_THAT(written("mistral-v1", {{"system", "b"}}),
              HasSubstr("requires a message of the user behind it"));
  EXPECT_THAT(written("mistral", {{"system", "b"}, {"user", "a"}}),
              HasSubstr("system messages are not supported"));
}

TEST(ChatTemplate, EveryNamedOneTakesAPlainQuestion) {
  for (const std::string_view name : ChatTemplate::names())
    EXPECT_THAT(written(name, {{"user", "What?"}}), HasSubstr("What?")) << name;
}

TEST(ChatTemplate, AModelWithoutOneOrWithAWrongOneNamesTheRemedy) {
  EXPECT_THAT(ChatTemplate::of(vocab()).error().line(),
              HasSubstr("chat template: the model has none; name one with --chat-template, one of chatml"));
  const Error wrong = ChatTemplate::of(vocab("{% if x %}\n{{ y")).error();
  EXPECT_THAT(
      wrong.line(),
      HasSubstr("chat template: line 2: the tag has no end, expected }}; name one with --chat-template"));
  EXPECT_EQ(ChatTemplate::from("{{ x | nosuch }}", "a.jinja", vocab()).error().line(),
            "a.jinja: line 1: the filter 'nosuch' is not supported");
  EXPECT_EQ(own("\n{{ messages[0].content.x.y }}", {{"user", "a"}}),
            "request: messages: chat template, line 2: 'x' is undefined");
}

// A template's default system message is its own, and not that of a family which it resembles.
TEST(ChatTemplate, TheDefaultSystemMessageIsTheTemplates) {
  const std::string source =
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nAnswer step by step.<|im_end|>\n' }}"
      "{% endif %}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + "
      "'<|im_end|>\n' }}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  EXPECT_EQ(own(source, {{"user", "hi"}}),
            "<|im_start|>system\nAnswer step by step.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(own(source, {{"system", ""}, {"user", "hi"}}),
            "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, ABosAtTheBeginningIsTheTokenizersWhereThatAddsOne) {
  const std::string source =
      "{{ bos_token }}{% for m in messages %}{{ bos_token + m.content + eos_token }}{% endfor %}";
  const ordered_json messages = messages_of({{"user", "a"}});
  Vocab v = vocab(source);
  EXPECT_EQ(text_of(ChatTemplate::of(v), {messages}), "<s><s>a</s>");
  v.add_bos = true;
  EXPECT_EQ(text_of(ChatTemplate::of(v), {messages}), "<s>a</s>");
  v.bos = kNoToken;
  EXPECT_THAT(text_of(ChatTemplate::of(v), {messages}), HasSubstr("'bos_token' is undefined"));
}

TEST(ChatTemplate, ToolsVariablesAndThoughtsReachTheTemplate) {
  Vocab v = vocab(
      "plain {{ x is defined }} {{ messages[0].thinking }} {{ messages[0].reasoning_content }} {{ tools }} "
      "{{ documents }}");
  v.tool_chat_template = "with {{ tools[0].name }} {{ x }}";
  const ordered_json messages = {{{"role", "user"}, {"content", "a"}, {"reasoning", "why"}}};
  const ordered_json tools = {{{"name", "find"}}}, variables = {{"x", true}}, none = ordered_json::array();
  EXPECT_EQ(text_of(ChatTemplate::of(v), {messages}), "plain False why why None None");
  EXPECT_EQ(text_of(ChatTemplate::of(v), {messages, &none, &variables}), "plain True why why [] None");
  EXPECT_EQ(text_of(ChatTemplate::of(v), {messages, &tools, &variables}), "with find True");
}

}  // namespace
}  // namespace tierd
