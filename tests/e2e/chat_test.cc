// Chats on the terminal, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/base/temp_folder.h"
#include "tests/e2e/program.h"
#include "tests/formats/gguf_builder.h"

namespace tierd {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A chat whose standard input the test writes.
class Chatting {
 public:
  explicit Chatting(std::vector<std::string> arguments) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    to_ = ends[1];
    Streams streams;
    streams.in = ends[0];
    arguments.insert(arguments.begin(), "-cnv");
    program_.emplace(TIERD_BIN_TIERD, std::move(arguments), streams);
    close(ends[0]);
  }
  ~Chatting() {
    if (to_ >= 0) close(to_);
  }
  void type(const std::string& text) const {
    EXPECT_EQ(write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  StartedProgram& program() { return *program_; }
  Ended end() {
    close(to_);
    to_ = -1;
    return program_->wait();
  }

 private:
  int to_ = -1;
  std::optional<StartedProgram> program_;
};

class ChatTest : public ProgramTest {
 protected:
  static Ended chat(const std::string& typed, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {kDemo, "-n", "12", "--temp", "0", "-t", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Chatting chatting(arguments);
    chatting.type(typed);
    return chatting.end();
  }
};

// Returns a small model with a chat template.
std::string model_with_template(const TempFolder& folder, const std::string& chat_template) {
  GgufBuilder model = tiny_gguf_llama();
  model.set_text("tokenizer.ggml.model", "llama");
  model.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "c", "▁"});
  model.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1, -2, -3, -4, -5});
  model.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 1, 1});
  model.set_text("tokenizer.chat_template", chat_template);
  return folder.write("m.gguf", model.bytes());
}

TEST_F(ChatTest, RefusesATemplateThatCannotBeRead) {
  const TempFolder folder;
  const std::string path =
      model_with_template(folder, "{% for m in messages %}\n{{ m.content | nosuch }}{% endfor %}");
  const Ended refused = run_tierd({"-m", path, "-cnv", "-n", "1"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(
      refused.err,
      HasSubstr(
          "chat template: line 2: the filter 'nosuch' is not supported; name one with --chat-template"));
  // A prompt without a chat needs no template.
  const Ended prompt = run_tierd({"-m", path, "-p", "a", "-n", "1", "-q", "-t", "1", "--fit"});
  EXPECT_EQ(prompt.status, 0) << prompt.err;
}

TEST_F(ChatTest, TheTemplateIsTheModelsOwnANamedOneOrAFile) {
  const TempFolder folder;
  const std::string path = model_with_template(folder, "{% for m in messages %}{{ m.content }}{% endfor %}");
  const auto chatting = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {path, "-n", "2", "-t", "1", "--fit"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Chatting one(arguments);
    one.type("ab\n");
    return one.end();
  };
  EXPECT_THAT(chatting({}).err, HasSubstr("chat (the model's own)"));
  EXPECT_THAT(chatting({"--chat-template", "vicuna"}).err, HasSubstr("chat (vicuna)"));
  const std::string file = folder.write("own.jinja", "{{ messages[0].content }}");
  EXPECT_THAT(chatting({"--chat-template-file", file}).err, HasSubstr("chat (" + file + ")"));
  const Ended both = chatting({"--chat-template-file", file, "--chat-template", "vicuna"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--chat-template-file: is given beside --chat-template"));
  const std::string wrong = folder.write("wrong.jinja", "{% if %}");
  EXPECT_THAT(chatting({"--chat-template-file", wrong}).err,
              HasSubstr(wrong + ": line 1: found %}, expected an expression"));
}

TEST_F(ChatTest, ContinuesWhatIsWrittenWhereThereIsNoForm) {
  const Ended text = run_tierd({"-m", kDemo, "-p", "First Citizen:", "-n", "12", "--temp", "0", "-t", "1"});
  const Ended once = chat("First Citizen:\n");
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(once.out, text.out + "\n");
  EXPECT_THAT(once.err, HasSubstr("this model has no chat template"));
  const Ended twice = chat("First Citizen:\n/clear\nFirst Citizen:\n", {"-q"});
  EXPECT_EQ(twice.out, once.out + once.out);
  EXPECT_EQ(twice.err, "");
}

// -r ends a text or an answer before the given string, in the middle of a token or across several.
TEST_F(ChatTest, AReversePromptEndsWhatTheModelSays) {
  const std::vector<std::string> text = {"-m", kDemo, "-p", "First Citizen:", "-n", "12", "--temp", "0",
                                         "-q", "-t",  "1"};
  const std::string whole = run_tierd(text).out;
  ASSERT_GT(whole.size(), 12u);
  for (const size_t at : {0u, 3u, 7u}) {
    const std::string stop = whole.substr(at, 5);
    std::vector<std::string> stopped = text;
    stopped.insert(stopped.end(), {"-r", "never said", "--reverse-prompt", stop});
    EXPECT_EQ(run_tierd(stopped).out, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(chat("First Citizen:\n", {"-q", "-r", stop}).out, whole.substr(0, whole.find(stop)) + "\n");
  }
  const Ended empty = run_tierd({"-m", kDemo, "-p", "x", "-r", ""});
  EXPECT_EQ(empty.status, 2);
  EXPECT_THAT(empty.err, HasSubstr("--reverse-prompt: is empty, expected a text"));
}

TEST_F(ChatTest, HasAFormACommandOrTwoAndLongLines) {
  const Ended formed = chat("Hello\nAnd \\\nnow?\n/stats\n/exit\nnobody hears this\n",
                            {"--chat-template", "chatml", "-sys", "Be brief."});
  EXPECT_EQ(formed.status, 0) << formed.err;
  EXPECT_EQ(std::count(formed.err.begin(), formed.err.end(), '\n') > 8, true) << "reports";
  EXPECT_THAT(formed.err, HasSubstr("chat (chatml)"));
  EXPECT_THAT(formed.err, HasSubstr("  decode "));
  const Ended single = chat("Hello\nAnd now?\n", {"-st", "-q"});
  EXPECT_EQ(single.out, chat("Hello\n", {"-q"}).out);
  EXPECT_THAT(chat("/what\n").err, HasSubstr("/clear begins a new chat"));
  const Ended full = chat(std::string(3000, 'x') + "\nHello\n");
  EXPECT_EQ(full.status, 0);
  EXPECT_THAT(full.err, HasSubstr("begin a new chat with /clear"));
}

// The KV cache of earlier turns is used again. The answer equals that of the whole chat read at once.
TEST_F(ChatTest, RemembersWithoutReadingAgain) {
  const std::vector<std::string> form = {"--chat-template", "chatml", "-q"};
  const Ended two = chat("Hello\nAnd now?\n", form);
  const Ended again = chat("Hello\n/nope\nAnd now?\n", form);
  EXPECT_EQ(two.out, again.out);
  EXPECT_THAT(two.out, StartsWith(chat("Hello\n", form).out));
}

TEST_F(ChatTest, AnInterruptEndsTheAnswerAndNotTheChat) {
  const std::string shape = folder().path() + "/slow.toml", store = folder().path() + "/slow";
  std::ofstream(shape)
      << "architecture = \"llama\"\nn_layers = 8\nd_model = 1024\nn_heads = 8\nn_kv_heads = 8\n"
         "head_dim = 128\nd_ff = 2048\nvocab_size = 1000\ncontext_length = 4096\nnorm = \"rms\"\n"
         "norm_eps = 1e-05\nactivation = \"silu\"\ngated = true\nposition = \"rope_interleaved\"\n"
         "rope_theta = 10000.0\n";
  ASSERT_EQ(run_program(TIERD_BIN_SYNTH, {"--shape", shape, "--encoding", "f32", store}).status, 0);
  Chatting chatting({store, "-n", "4000", "--ignore-eos", "-t", "1"});
  const auto wait_for = [&](const auto& there) {
    for (int i = 0; i < 10'000 && !there(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  chatting.type("Hello\n");
  wait_for([&] { return chatting.program().out().size() > 20; });
  chatting.program().kill(SIGINT);
  wait_for([&] { return chatting.program().out().ends_with("\n"); });
  const size_t stopped = chatting.program().out().size();
  chatting.type("And again\n");
  wait_for([&] { return chatting.program().out().size() > stopped + 20; });
  chatting.program().kill(SIGINT);
  chatting.type("/exit\n");
  const Ended ended = chatting.end();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_GT(ended.out.size(), stopped);
  EXPECT_THAT(ended.err, HasSubstr("  decode "));
}

// Input without a newline is refused before it fills memory.
TEST_F(ChatTest, ALineIsBounded) {
  Streams streams;
  streams.in = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  StartedProgram program(TIERD_BIN_TIERD, {"-cnv", kDemo, "-t", "1"}, streams);
  const Ended ended = program.wait();
  close(streams.in);
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("chat: a line has more than 1048576 bytes"));
}

}  // namespace
}  // namespace tierd
