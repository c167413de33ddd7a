// The two hashes by which the hub names files, by nettle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tierd {

class Digest {
 public:
  // Of a file of `bytes` bytes whose hash has `digits` hexadecimal digits: SHA-256 (64), or the SHA-1 of git
  // (40), which begins with the length.
  Digest(size_t digits, uint64_t bytes);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::span<const std::byte> bytes);
  // In small letters. Nothing can be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tierd
