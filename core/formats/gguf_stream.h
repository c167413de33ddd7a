// Reads a GGUF file from front to back, never past its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"

namespace tierd {

class GgufStream {
 public:
  // `file` must outlive the stream.
  explicit GgufStream(const File& file, uint64_t offset = 0) : file_(file), offset_(offset) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return file_.size_bytes() - offset_; }

  // Reads a number. `what` names it in the error if the file is too short.
  template <class T>
  Result<T> number(std::string_view what) {
    TIERD_TRY(need(sizeof(T), what));
    T value;
    std::memcpy(&value, buffer_.data() + (offset_ - buffer_start_), sizeof value);
    offset_ += sizeof value;
    return value;
  }
  // Reads a string: eight bytes of length, then the text.
  Result<std::string> text(std::string_view what, uint64_t limit_bytes);
  Status skip_text(std::string_view what);
  Status skip(uint64_t bytes, std::string_view what);

  Error error(std::string_view detail) const;

 private:
  Status check_left(uint64_t bytes, std::string_view what) const;
  Result<uint64_t> text_length(std::string_view what);
  // Makes sure that the buffer holds the next `bytes` (a few).
  Status need(uint64_t bytes, std::string_view what);

  const File& file_;
  uint64_t offset_;
  uint64_t buffer_start_ = 0;  // offset in the file of the buffer's first byte
  std::vector<std::byte> buffer_;
};

}  // namespace tierd
