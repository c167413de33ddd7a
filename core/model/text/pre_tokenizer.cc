#include "core/model/text/pre_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "core/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tierd {
namespace {

// The expressions have \p{WSpace}, Unicode's White_Space, in place of their authors' \s, because PCRE2's \s
// also matches U+180E.
constexpr const char* kGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{WSpace}\p{L}\p{N}]+|\p{WSpace}+(?!\P{WSpace})|\p{WSpace}+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\p{WSpace}\p{L}\p{N}]+[\r\n]*|)"
    R"(\p{WSpace}*[\r\n]+|\p{WSpace}+(?!\P{WSpace})|\p{WSpace}+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\p{WSpace}\p{L}\p{N}]+[\r\n]*|)"
    R"(\p{WSpace}*[\r\n]+|\p{WSpace}+(?!\P{WSpace})|\p{WSpace}+)";

constexpr std::string_view kLlama3Steps =
    R"(Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Family {
  std::string_view name;
  // Applied in order, each to the parts that the one before has cut. Text that does not match becomes a word.
  std::array<const char*, 5> expressions;
  bool whole_words_first;
  std::string_view hugging_face_steps;  // empty: not recognized in a tokenizer.json
};

constexpr Family kFamilies[] = {
    {"gpt-2", {kGpt2}, false, "ByteLevel"},
    {"llama-bpe", {kLlama3}, true, kLlama3Steps},
    {"qwen2",
     {kQwen2},
     false,
     R"(Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"falcon", {R"([\p{P}$+<=>^~|`]+)", kGpt2, "[0-9][0-9][0-9]"}, false, ""},
    {"starcoder", {R"(\p{N})", kGpt2}, false, "Digits\nByteLevel"},
    {"dbrx", {kLlama3}, false, kLlama3Steps},
    {"deepseek-coder",
     {R"([\r\n])", R"(\p{WSpace}?\p{L}+)", R"(\p{WSpace}?\p{P}+)",
      R"([\x{4e00}-\x{9fa5}\x{0800}-\x{4e00}\x{ac00}-\x{d7ff}]+)", R"(\p{N})"},
     false,
     ""},
};

// Other names of llama.cpp's converter for these rules.
struct Alias {
  std::string_view name;
  std::string_view family;
};
constexpr Alias kAliases[] = {
    {"phi-2", "gpt-2"},
    {"mpt", "gpt-2"},
    {"olmo", "gpt-2"},
    {"jais", "gpt-2"},
    {"jina-es", "gpt-2"},
    {"jina-de", "gpt-2"},
    {"jina-v2-es", "gpt-2"},
    {"jina-v2-de", "gpt-2"},
    {"gigachat", "gpt-2"},
    {"a.x-4.0", "gpt-2"},
    {"mellum", "gpt-2"},
    {"modern-bert", "gpt-2"},
    {"exaone4", "gpt-2"},
    {"trillion", "gpt-2"},
    {"granite-docling", "gpt-2"},
    {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"falcon3", "llama-bpe"},
    {"falcon-h1", "llama-bpe"},
    {"pixtral", "llama-bpe"},
    {"midm-2.0", "llama-bpe"},
    {"lfm2", "llama-bpe"},
    {"jina-v5-nano", "llama-bpe"},
    {"deepseek-r1-qwen", "qwen2"},
    {"megrez", "qwen2"},
    {"kormo", "qwen2"},
    {"f2llmv2", "qwen2"},
    {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"},
    {"solar-open", "qwen2"},
    {"grok-2", "qwen2"},
    {"refact", "starcoder"},
    {"command-r", "starcoder"},
    {"smollm", "starcoder"},
    {"codeshell", "starcoder"},
    {"exaone", "starcoder"},
    {"minerva-7b", "starcoder"},
    {"mellum2", "starcoder"},
    {"smaug-bpe", "dbrx"},
    {"glm4", "dbrx"},
    {"chatglm-bpe", "dbrx"},
};

struct FreeExpression {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using Expression = std::unique_ptr<pcre2_code, FreeExpression>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeContext>;

Expression compile(const char* expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Expression code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression), PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  TIERD_CHECK_MSG(code != nullptr, expression);
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // if JIT is refused, matching is only slower
  return code;
}

// A run of text that is all well-formed UTF-8, or all malformed.
struct Segment {
  std::string_view text;
  bool well_formed = false;
};

std::vector<Segment> cut_at_bad_bytes(std::string_view text) {
  std::vector<Segment> segments;
  size_t begin = 0;
  bool well_formed = true;
  const auto close = [&](size_t end) {
    if (end > begin) segments.push_back({text.substr(begin, end - begin), well_formed});
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_character_bytes(text, at);
    if ((bytes > 0) != well_formed) {
      close(at);
      well_formed = !well_formed;
    }
    at += bytes > 0 ? bytes : 1;
  }
  close(text.size());
  return segments;
}

}  // namespace

struct PreTokenizer::Rules {
  const Family* family = nullptr;
  std::vector<Expression> codes;
  MatchContext context;

  void cut(const pcre2_code* code, pcre2_match_data* match, std::string_view text,
           std::vector<std::string_view>& words) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match);
    size_t at = 0;
    while (at < text.size()) {
      // The text is known to be UTF-8; checking it again at each word would take quadratic time.
      int count = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, match, context.get());
      if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
        count = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match,
                            context.get());
      }
      if (count == PCRE2_ERROR_NOMATCH) break;
      TIERD_CHECK_MSG(count > 0 && span[1] > span[0], "an expression of the table failed or matched nothing");
      if (span[0] > at) words.push_back(text.substr(at, span[0] - at));
      words.push_back(text.substr(span[0], span[1] - span[0]));
      at = span[1];
    }
    if (at < text.size()) words.push_back(text.substr(at));
  }
};

PreTokenizer::PreTokenizer(std::unique_ptr<Rules> rules) : rules_(std::move(rules)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::make(std::string_view name, std::string_view origin) {
  for (const Family& family : kFamilies) {
    if (family.name != family_of(name)) continue;
    auto rules = std::make_unique<Rules>();
    rules->family = &family;
    for (const char* expression : family.expressions) {
      if (expression != nullptr) rules->codes.push_back(compile(expression));
    }
    rules->context.reset(pcre2_match_context_create(nullptr));
    TIERD_CHECK(rules->context != nullptr);
    // The expressions backtrack over white space at most once, so long text needs no limit.
    pcre2_set_match_limit(rules->context.get(), UINT32_MAX);
    pcre2_set_depth_limit(rules->context.get(), UINT32_MAX);
    pcre2_set_heap_limit(rules->context.get(), UINT32_MAX);
    return PreTokenizer(std::move(rules));
  }
  return Error{Code::unsupported, std::string(origin),
               fmt::format("unknown pre-tokenizer \"{}\"; known are {}", name, known_names())};
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> words;
  std::vector<std::string_view> current;
  std::vector<std::string_view> cut;
  for (const Segment& segment : cut_at_bad_bytes(text)) {
    if (!segment.well_formed) {
      words.push_back(segment.text);
      continue;
    }
    current.assign(1, segment.text);
    for (const Expression& code : rules_->codes) {
      const MatchData match(pcre2_match_data_create_from_pattern(code.get(), nullptr));
      TIERD_CHECK(match != nullptr);
      cut.clear();
      for (const std::string_view word : current) rules_->cut(code.get(), match.get(), word, cut);
      current.swap(cut);
    }
    words.insert(words.end(), current.begin(), current.end());
  }
  return words;
}

bool PreTokenizer::whole_words_first() const {
  return rules_->family->whole_words_first;
}

std::string_view PreTokenizer::family_of(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.family;
  }
  return name;
}

std::string_view PreTokenizer::name_of_steps(std::string_view steps, bool whole_words_first) {
  for (const Family& family : kFamilies) {
    const bool same = family.hugging_face_steps == steps && family.whole_words_first == whole_words_first;
    if (same && !steps.empty()) return family.name;
  }
  return {};
}

std::string PreTokenizer::known_names() {
  std::string names;
  for (const Family& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  for (const Alias& alias : kAliases) names.append(", ").append(alias.name);
  return names;
}

}  // namespace tierd
