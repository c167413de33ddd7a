// Iterates over the fields of a serialized protocol buffer message of any schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tierd {

class ProtobufReader {
 public:
  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // of a varint; else 0
    std::string_view bytes;  // of a string or message; else empty. Points into the message.
  };

  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Returns nullopt at the end, and if the message is malformed.
  std::optional<Field> next();
  // After next() returned nullopt: whether that was the end.
  bool whole() const { return rest_.empty(); }

 private:
  std::optional<uint64_t> varint();

  std::string_view rest_;
};

}  // namespace tierd
