// Numbers, texts and lists in the form of a trace: numbers of seven bits a byte, lists as runs of equal
// steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tierd {

inline constexpr uint64_t kLongestTraceText = 1u << 16;  // a longer text is refused

// Appends numbers and texts to bytes.
class TraceOut {
 public:
  explicit TraceOut(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    const auto* data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }

 private:
  std::vector<std::byte>& bytes_;
};

// Reads numbers and texts. After an error all further values are zero.
class TraceIn {
 public:
  // `most_listed`: the limit for the entries of all lists together.
  TraceIn(std::span<const std::byte> bytes, uint64_t most_listed)
      : bytes_(bytes), most_listed_(most_listed) {}
  bool good() const { return good_; }
  // Returns the entries of lists that are still allowed: a run costs a damaged file two bytes, but the reader
  // its length.
  uint64_t most_listed() const { return most_listed_; }
  void listed(uint64_t count) {
    if (count > most_listed_) return fail();
    most_listed_ -= count;
  }
  bool at_end() const { return at_ == bytes_.size(); }
  void fail() { good_ = false; }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && good_; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  // Reads a number within 0 and `most`.
  uint64_t number(uint64_t most) {
    const uint64_t value = number();
    if (value > most) good_ = false;
    return good_ ? value : 0;
  }
  std::string text() {
    const uint64_t size = number(kLongestTraceText);
    if (size > bytes_.size() - at_) good_ = false;  // the bytes left after the number
    if (!good_) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t most_listed_;
  bool good_ = true;
};

// Encodes signed numbers as unsigned ones, so that numbers near 0 are small.
constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// An entry of a list. Lists are written as runs: the number of further entries, and the step of each number.
template <size_t K>
using Row = std::array<uint32_t, K>;

template <size_t K, class At>
void put_rows(TraceOut& out, size_t count, At at) {
  out.number(count);
  Row<K> last{};
  for (size_t i = 0; i < count;) {
    std::array<int64_t, K> step{};
    const auto step_to = [&](const Row<K>& from, const Row<K>& to) {
      std::array<int64_t, K> d{};
      for (size_t k = 0; k < K; ++k) d[k] = int64_t{to[k]} - int64_t{from[k]};
      return d;
    };
    step = step_to(last, at(i));
    size_t run = 0;
    for (last = at(i++); i < count && step_to(last, at(i)) == step; ++run) last = at(i++);
    out.number(run);
    for (const int64_t d : step) out.number(zigzag(d));
  }
}
template <size_t K, class Add>
void get_rows(TraceIn& in, Add add) {
  const uint64_t count = in.number(in.most_listed());
  in.listed(count);
  Row<K> last{};
  for (uint64_t i = 0; i < count && in.good();) {
    const uint64_t run = in.number(count - i - 1);
    std::array<int64_t, K> step{};
    for (int64_t& d : step) d = unzigzag(in.number(uint64_t{UINT32_MAX} * 2 + 1));
    for (uint64_t r = 0; r <= run && in.good(); ++r, ++i) {
      for (size_t k = 0; k < K; ++k) {
        const int64_t next = int64_t{last[k]} + step[k];
        if (next < 0 || next > UINT32_MAX) in.fail();
        last[k] = static_cast<uint32_t>(next);
      }
      if (in.good()) add(last);
    }
  }
}

inline void put_numbers(TraceOut& out, std::span<const uint32_t> numbers) {
  put_rows<1>(out, numbers.size(), [&](size_t i) { return Row<1>{numbers[i]}; });
}
inline std::vector<uint32_t> get_numbers(TraceIn& in) {
  std::vector<uint32_t> numbers;
  get_rows<1>(in, [&](const Row<1>& row) { numbers.push_back(row[0]); });
  return numbers;
}

}  // namespace tierd
