// XXH3-64, the checksum of all data in a store: it finds accidental damage by disks, cables and memory, and
// costs less than reading the data. It does not protect against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tierd {

uint64_t checksum(std::span<const std::byte> bytes);
uint64_t checksum(std::string_view text);

// FNV-1a over words of 64 bits instead of bytes: cheaper than a checksum where the words are made one by one.
class WordHash {
 public:
  static constexpr uint64_t kPrime = 0x100000001b3;

  void add(uint64_t word) { hash_ = (hash_ ^ word) * kPrime; }
  uint64_t value() const { return hash_; }
  bool operator==(const WordHash&) const = default;

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// 16 lower-case hexadecimal digits.
std::string checksum_text(uint64_t checksum);

}  // namespace tierd
