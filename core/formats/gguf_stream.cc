#include "core/formats/gguf_stream.h"

#include <algorithm>

#include <fmt/format.h>

namespace tierd {
namespace {
constexpr uint64_t kBufferBytes = 64 << 10;
}

Error GgufStream::error(std::string_view detail) const {
  return {Code::corrupt, file_.at(offset_), std::string(detail)};
}

Status GgufStream::check_left(uint64_t bytes, std::string_view what) const {
  if (bytes <= left()) return {};
  return error(fmt::format("{} needs {} bytes, the file has {} left", what, bytes, left()));
}

Status GgufStream::need(uint64_t bytes, std::string_view what) {
  TIERD_TRY(check_left(bytes, what));
  const bool buffered =
      offset_ >= buffer_start_ && offset_ + bytes <= buffer_start_ + buffer_.size() && !buffer_.empty();
  if (buffered) return {};
  buffer_.resize(std::min(kBufferBytes, left()));
  buffer_start_ = offset_;
  return file_.read_exact(offset_, buffer_);
}

Status GgufStream::skip(uint64_t bytes, std::string_view what) {
  TIERD_TRY(check_left(bytes, what));
  offset_ += bytes;
  return {};
}

Result<uint64_t> GgufStream::text_length(std::string_view what) {
  TIERD_ASSIGN(const auto length, number<uint64_t>(what));
  if (length > left()) {
    return error(fmt::format("{} is {} bytes long, the file has {} left", what, length, left()));
  }
  return length;
}

Result<std::string> GgufStream::text(std::string_view what, uint64_t limit_bytes) {
  TIERD_ASSIGN(const uint64_t length, text_length(what));
  if (length > limit_bytes) {
    return error(fmt::format("{} is {} bytes long, expected at most {}", what, length, limit_bytes));
  }
  std::string text(length, '\0');
  if (length <= kBufferBytes) {
    TIERD_TRY(need(length, what));
    if (length != 0) std::memcpy(text.data(), buffer_.data() + (offset_ - buffer_start_), length);
  } else {
    TIERD_TRY(file_.read_exact(offset_, std::as_writable_bytes(std::span(text))));
  }
  offset_ += length;
  return text;
}

Status GgufStream::skip_text(std::string_view what) {
  TIERD_ASSIGN(const uint64_t length, text_length(what));
  offset_ += length;
  return {};
}

}  // namespace tierd
