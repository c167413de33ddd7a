#include "core/formats/tokenizer/protobuf.h"

namespace tierd {

std::optional<uint64_t> ProtobufReader::varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::string_view start = rest_;
  const auto broken = [&] {
    rest_ = start;  // not empty, so whole() returns false
    return std::nullopt;
  };
  const std::optional<uint64_t> tag = varint();
  if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return broken();
  Field field;
  field.number = static_cast<uint32_t>(*tag >> 3);
  uint64_t bytes = 0;
  switch (*tag & 7) {
    case 0: {
      const std::optional<uint64_t> value = varint();
      if (!value) return broken();
      field.value = *value;
      return field;
    }
    case 1:
      bytes = 8;
      break;
    case 2: {
      const std::optional<uint64_t> length = varint();
      if (!length) return broken();
      bytes = *length;
      break;
    }
    case 5:
      bytes = 4;
      break;
    default:
      return broken();
  }
  if (bytes > rest_.size()) return broken();
  if ((*tag & 7) == 2) field.bytes = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return field;
}

}  // namespace tierd
