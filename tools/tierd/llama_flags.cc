#include "tools/tierd/llama_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "tools/tierd/llama_flag_table.h"

namespace tierd {
namespace {

const LlamaFlag* find(std::string_view name) {
  for (const LlamaFlag& flag : llama_flags()) {
    if (std::ranges::find(flag.names, name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

bool accepts(const LlamaFlag& flag, std::string_view value) {
  for (std::string_view left = flag.accepted; !left.empty();) {
    const size_t end = std::min(left.find('|'), left.size());
    if (const std::string_view one = left.substr(0, end); one == "*" || one == value) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

// A word with one dash and several letters is one flag, never several; but a number may follow a short flag
// without a space (-c4096).
bool is_short_with_number(std::string_view word, const std::function<bool(std::string_view)>& takes_value) {
  return word.size() > 2 && takes_value(word.substr(0, 2)) &&
         std::ranges::all_of(word.substr(2), [](unsigned char c) { return std::isdigit(c) != 0; });
}

class Translation {
 public:
  Translation(const std::vector<std::string>& words, const std::function<bool(std::string_view)>& takes_value)
      : words_(words), takes_value_(takes_value) {}

  Result<std::vector<std::string>> run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        out_.insert(out_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_) - 1, words_.end());
        break;
      }
      if (word.size() < 2 || word.front() != '-') {
        out_.push_back(word);
      } else {
        flag(word);
      }
    }
    if (refused_.empty()) return std::move(out_);
    return Error{Code::invalid_argument, "tierd", refused_};
  }

 private:
  void flag(const std::string& word) {
    const bool is_long = word.starts_with("--");
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (const LlamaFlag* const known = find(name)) return translate(*known, name, value);
    if (!is_long && word.size() > 2 && !is_short_with_number(word, takes_value_))
      return refuse(name, "is no flag");
    out_.push_back(word);
    if (!value && takes_value_(name) && at_ < words_.size()) out_.push_back(words_[at_++]);
  }

  void translate(const LlamaFlag& flag, const std::string& name, std::optional<std::string> value) {
    const bool more = at_ < words_.size();
    if (!value && flag.value == LlamaFlag::Value::one && more) value = words_[at_++];
    if (!value && flag.value == LlamaFlag::Value::maybe && more && !words_[at_].starts_with("-"))
      value = words_[at_++];
    if (!value && flag.value == LlamaFlag::Value::maybe) value = std::string(flag.missing);
    if (!flag.ours.empty()) {
      out_.emplace_back(flag.ours);
      if (value) out_.push_back(*value);
    } else if (!accepts(flag, value.value_or(""))) {
      refuse(flag.accepted.empty() || !value ? name : name + " " + *value, flag.instead);
    }
  }

  void refuse(const std::string& what, std::string_view why) {
    refused_ += fmt::format("{}{}: {}", refused_.empty() ? "" : "; ", what, why);
  }

  const std::vector<std::string>& words_;
  const std::function<bool(std::string_view)>& takes_value_;
  size_t at_ = 0;
  std::vector<std::string> out_;
  std::string refused_;
};

}  // namespace

Result<std::vector<std::string>> from_llama(const std::vector<std::string>& words,
                                            const std::function<bool(std::string_view)>& takes_value) {
  return Translation(words, takes_value).run();
}

}  // namespace tierd
