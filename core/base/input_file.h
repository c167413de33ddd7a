// Small files read whole, with bounds that hold for anything a person may pass by mistake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// The largest tokenizer files of today are about 35 MB.
inline constexpr uint64_t kMaxTokenizerFileBytes = 256u << 20;
inline constexpr uint64_t kMaxTokenizerConfigBytes = 16u << 20;  // of the small files beside them

bool is_regular_file(const std::string& path);

// The whole file. Errors: not_found (also of a Git LFS pointer); invalid_argument (not a regular file, such
// as a folder or a pipe); corrupt (larger than `max_bytes`); io_error.
Result<std::string> read_whole_file(const std::string& path, uint64_t max_bytes);

// The same, parsed; the document's root must be an object. Error: corrupt, with the offset of what is not
// JSON, or of what nests deeper than any tokenizer does.
Result<nlohmann::json> read_json_file(const std::string& path, uint64_t max_bytes);

// What a piece looks like to a person: printable, on one line, cut after about `max_bytes`.
std::string shown(std::string_view text, size_t max_bytes = 60);

}  // namespace tierd
