// The two hashes by which the hub names files, computed by nettle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tierd {

class Digest {
 public:
  // Begins the hash of a file of `bytes` bytes. `digits`, in hexadecimal, selects it: 64 is SHA-256; 40 is
  // git's SHA-1, which hashes the length first.
  Digest(size_t digits, uint64_t bytes);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::span<const std::byte> bytes);
  // Returns the hash in lower case. No bytes can be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tierd
