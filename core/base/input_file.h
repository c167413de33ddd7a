// Reads small files whole, with bounds that hold for any file passed by mistake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// The largest current tokenizer files have about 35 MB.
inline constexpr uint64_t kMaxTokenizerFileBytes = 256u << 20;
inline constexpr uint64_t kMaxTokenizerConfigBytes = 16u << 20;  // for the small files beside them

bool is_regular_file(const std::string& path);

// Reads the whole file. Errors: not_found (also for a Git LFS pointer); invalid_argument (not a regular file,
// such as a folder or a pipe); corrupt (larger than `max_bytes`); io_error.
Result<std::string> read_whole_file(const std::string& path, uint64_t max_bytes);

// The same, parsed; the document's root must be an object. Error: corrupt, with the offset of the invalid
// JSON, or of the excessive nesting.
Result<nlohmann::json> read_json_file(const std::string& path, uint64_t max_bytes);

// Returns a piece as printable text on one line, cut after about `max_bytes`.
std::string shown(std::string_view text, size_t max_bytes = 60);

}  // namespace tierd
