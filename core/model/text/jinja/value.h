// The values of a template, as Python has them: immutable, apart from namespaces and the state of loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace tierd::jinja {

// The deepest nest of lists and dicts, and the largest value with all that it contains, in bytes.
inline constexpr uint32_t kDeepestValue = 100;
inline constexpr uint64_t kLargestValue = uint64_t{32} << 20;
inline constexpr uint64_t kMostItems = 100'000;  // of range(), as in jinja2's sandbox

struct Text;
struct Sequence;
struct Dict;
struct Object;

// Points to the name of the variable or attribute that is missing; NULL where it has none.
struct Undefined {
  const std::string* name = nullptr;
};
struct None {};

class Value {
 public:
  using Held =
      std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, std::shared_ptr<Object>>;
  Value() = default;
  Value(Held held) : held_(std::move(held)) {}  // NOLINT: implicit by intent

  bool is_undefined() const { return has<Undefined>(); }
  bool is_none() const { return has<None>(); }
  template <class T>
  bool has() const {
    return std::holds_alternative<T>(held_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  // Return NULL for a value of another kind.
  const std::string* text() const;
  const Sequence* sequence() const;
  const Dict* dict() const;
  Object* object() const;
  // Returns the value of an int or a bool.
  std::optional<int64_t> integer() const;
  // Returns the value of an int, a bool or a float.
  std::optional<double> number() const;
  const Held& held() const { return held_; }

 private:
  Held held_;
};

// Bytes of values in use, which the rendering bounds.
struct Counted {
  uint64_t* in_use = nullptr;
  uint64_t bytes = 0;
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    if (in_use != nullptr) *in_use -= bytes;
  }
};

struct Text : Counted {
  std::string bytes_of;
  size_t length = 0;    // characters; a byte that is not UTF-8 is one
  bool markup = false;  // of `safe` or `escape`: "+" escapes the other text
};

struct Sequence : Counted {
  enum class Kind : uint8_t { list, tuple, range, view, generator };
  Kind kind = Kind::list;
  std::vector<Value> items;
  uint32_t depth = 1;
  uint64_t weight = 1;         // bytes of all that it contains, shared values counted each time
  mutable bool spent = false;  // a generator yields its items once
};

struct Dict : Counted {
  std::vector<std::pair<Value, Value>> items;       // in the order of insertion
  std::unordered_map<std::string, size_t> indexes;  // by key_text
  uint32_t depth = 1;
  uint64_t weight = 1;

  // Returns the text that equal keys have in common; nothing for a value that cannot be a key.
  static std::optional<std::string> key_text(const Value& key);
  // Inserts or replaces. Returns false if `key` cannot be a key.
  bool set(const Value& key, Value value);
  // Returns NULL if there is no such key.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

// A value with a state or a behaviour. None can be an item of a list, a dict or a namespace, so that values
// form no cycles and refer to no scope that has ended.
struct Object {
  virtual ~Object() = default;
  virtual std::optional<Value> attribute(std::string_view) const { return {}; }
};

// The result of namespace().
struct Namespace : Object {
  std::vector<std::pair<std::string, Value>> attributes;
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, Value value);
};

// Makes values and counts what a rendering costs.
class Heap {
 public:
  // Bytes of values, and steps of about 100 ns.
  Heap(uint64_t most_bytes, uint64_t most_steps) : most_bytes_(most_bytes), steps_left_(most_steps) {}

  Value text(std::string bytes, bool markup = false);
  Value sequence(Sequence::Kind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(Sequence::Kind::list, std::move(items)); }
  Value dict(std::shared_ptr<Dict> dict);

  // Counts the work of reading `bytes` once.
  void spend_on(uint64_t bytes) { spend(1 + bytes / 64); }
  // Counts the work of a search of `sought` in `text`, or of another operation on all pairs of their bytes.
  void spend_on_search(uint64_t text, uint64_t sought) { spend(1 + text * (8 + sought) / 256); }
  void spend(uint64_t steps) { steps_left_ -= std::min(steps, steps_left_); }
  // Error: invalid_argument if a bound was exceeded.
  Status check() const;

 private:
  void count(Counted& made, uint64_t bytes);
  uint64_t most_bytes_;
  uint64_t steps_left_;
  uint64_t in_use_ = 0;
  const char* refused_ = nullptr;  // the value that was made and may not exist
};

// Returns a text of the syntax tree, which no rendering counts.
Value constant_text(std::string bytes);

// An error without a place, which the interpreter adds.
Error wrong(std::string detail);

// Returns the bytes of a value with all that it contains.
uint64_t weight_of(const Value& value);
bool is_true(const Value& value);
bool is_markup(const Value& value);
bool equal(const Value& a, const Value& b);
// Returns a number below, equal to or above 0. Error: the values have no order.
Result<int> compare(const Value& a, const Value& b);
// The name of the value's type for messages, such as "a list".
std::string_view kind_of(const Value& value);

// Python's str() and repr(). Error: the value has no text, such as a macro.
Result<std::string> str(const Value& value);
Result<std::string> repr(const Value& value);
std::string repr_of_text(std::string_view text);
std::string repr_of_double(double value);

// Returns the items of anything that Python iterates over; those of a generator once.
Result<std::vector<Value>> items_of(Heap& heap, const Value& value);

}  // namespace tierd::jinja
