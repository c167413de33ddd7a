#include "core/base/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/lfs_pointer.h"
#include "core/base/utf8.h"

namespace tierd {
namespace {

constexpr int kMaxNesting = 64;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Returns the offset at which brackets nest too deep, or npos. Cheaper than stopping the parser.
size_t too_deep_at(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxNesting) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<std::string> read_whole_file(const std::string& path, uint64_t max_bytes) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return Error{errno == ENOENT || errno == ENOTDIR ? Code::not_found : Code::io_error, path,
                 std::strerror(errno)};
  }
  // Checked before opening, because opening a pipe would wait for its writer.
  if (!S_ISREG(status.st_mode)) return Error{Code::invalid_argument, path, "is not a regular file"};
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes > max_bytes) {
    return Error{Code::corrupt, path, fmt::format("is {} bytes; at most {} are expected", bytes, max_bytes)};
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return Error{Code::io_error, path, std::strerror(errno)};
  std::string text(bytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return Error{Code::io_error, path, std::strerror(errno)};
  TIERD_TRY(refuse_lfs_pointer(text, path));
  return text;
}

Result<nlohmann::json> read_json_file(const std::string& path, uint64_t max_bytes) {
  TIERD_ASSIGN(const std::string text, read_whole_file(path, max_bytes));
  if (const size_t at = too_deep_at(text); at != std::string_view::npos) {
    return Error{Code::corrupt, path,
                 fmt::format("offset {}: nested deeper than {} levels", at, kMaxNesting)};
  }
  try {
    nlohmann::json root = nlohmann::json::parse(text);
    if (!root.is_object()) {
      return Error{Code::corrupt, path, fmt::format("holds a JSON {}; expected an object", root.type_name())};
    }
    return root;
  } catch (const nlohmann::json::parse_error& e) {
    return Error{Code::corrupt, path, fmt::format("offset {}: not JSON", e.byte)};
  } catch (const nlohmann::json::exception&) {
    return Error{Code::corrupt, path, "holds a number that is out of range"};
  }
}

std::string shown(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (at >= max_bytes) return out + "…";
    const size_t bytes = utf8_character_bytes(text, at);
    const auto byte = static_cast<uint8_t>(text[at]);
    if (bytes == 0 || byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      out.append(text, at, bytes);
      at += bytes;
    }
  }
  return out;
}

}  // namespace tierd
