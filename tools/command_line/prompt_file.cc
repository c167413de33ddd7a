#include "tools/command_line/prompt_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tierd {

Result<std::string> read_prompt_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code none;
  if (!in || std::filesystem::is_directory(path, none))
    return Error{Code::invalid_argument, path, "cannot be read"};
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace tierd
