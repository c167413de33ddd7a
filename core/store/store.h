// A store on disk, opened to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

class Store {
 public:
  // The manifest read and checked; the weights are not touched. Errors: those of read_manifest.
  static Result<Store> open(const std::string& directory);

  const Manifest& manifest() const { return manifest_; }
  const std::string& directory() const { return directory_; }
  std::string data_path() const;

  // Whether `bytes`, all of an extent as read from the data file, are what was written. Any thread. Error:
  // corrupt, with file, extent, site, neuron and offset.
  Status verify(uint32_t extent, std::span<const std::byte> bytes) const;
  // Reads and verifies every extent; the first bad one is the error.
  Status verify_all(bool quiet) const;

  // "extent 17 (layers.3.qkv neuron 2, offset 69632)".
  std::string describe(uint32_t extent) const;

 private:
  Store(std::string directory, Manifest manifest)
      : directory_(std::move(directory)), manifest_(std::move(manifest)) {}

  std::string directory_;
  Manifest manifest_;
};

}  // namespace tierd
