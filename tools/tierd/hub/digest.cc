#include "tools/tierd/hub/digest.h"

#include <fmt/format.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#include <array>
#include <variant>

#include "core/base/check.h"

namespace tierd {

struct Digest::State {
  std::variant<sha256_ctx, sha1_ctx> context;
};

Digest::Digest(size_t digits, uint64_t bytes) : state_(std::make_unique<State>()) {
  TIERD_CHECK(digits == 2 * SHA1_DIGEST_SIZE || digits == 2 * SHA256_DIGEST_SIZE);
  if (digits == 2 * SHA256_DIGEST_SIZE) {
    nettle_sha256_init(&std::get<sha256_ctx>(state_->context));
    return;
  }
  nettle_sha1_init(&state_->context.emplace<sha1_ctx>());
  const std::string head = fmt::format("blob {}", bytes);
  add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // with the terminating zero
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::span<const std::byte> bytes) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (auto* const large = std::get_if<sha256_ctx>(&state_->context)) {
    nettle_sha256_update(large, bytes.size(), data);
  } else {
    nettle_sha1_update(&std::get<sha1_ctx>(state_->context), bytes.size(), data);
  }
}

std::string Digest::finish() {
  std::array<uint8_t, SHA256_DIGEST_SIZE> hash{};
  size_t bytes = SHA256_DIGEST_SIZE;
  if (auto* const large = std::get_if<sha256_ctx>(&state_->context)) {
    nettle_sha256_digest(large, bytes, hash.data());
  } else {
    bytes = SHA1_DIGEST_SIZE;
    nettle_sha1_digest(&std::get<sha1_ctx>(state_->context), bytes, hash.data());
  }
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", hash[i]);
  return text;
}

}  // namespace tierd
