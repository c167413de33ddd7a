// Reads the keys of tables of a TOML file that is not trusted. The first error of a file is kept; it is
// invalid_argument and names the file, the line where it is known, and the key with its tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "core/base/enum_names.h"
#include "core/base/result.h"

namespace tierd {

class TomlFields {
 public:
  // The table of a whole file, which must outlive this and all tables inside.
  TomlFields(const toml::table& table, std::string file);
  // A table of the file, whose keys are named "PATH.KEY" in errors.
  TomlFields(const TomlFields& file, const toml::table& table, std::string path);

  bool has(std::string_view key);
  bool is_text(std::string_view key);
  std::vector<std::string> keys() const;
  // Each reads a required key. After an error the result is `least`, false, empty or the first enumerator.
  double number(std::string_view key, double least, double most);
  uint32_t whole(std::string_view key, uint32_t least, uint32_t most);
  bool flag(std::string_view key);
  std::string text(std::string_view key);
  template <NamedEnum E>
  E one_of(std::string_view key) {
    const std::string word = text(key);
    const std::optional<E> found = by_name<E>(word);
    if (!found)
      fail(key, fmt::format("is '{}'; one of {} is expected", word, fmt::join(names_of(E{}), ", ")));
    return found.value_or(E{});
  }
  // Reads a number in the same way if the file has it.
  void read(std::string_view key, double& field, double least, double most);
  void read(std::string_view key, uint32_t& field, uint32_t least, uint32_t most);
  void read(std::string_view key, std::string& field);

  std::vector<double> numbers(std::string_view key, double least, double most);
  std::vector<std::string> texts(std::string_view key);
  TomlFields table(std::string_view key);
  // Returns the tables [[KEY]].
  std::vector<TomlFields> tables(std::string_view key);

  // `key`: empty for an error of the table as a whole.
  void fail(std::string_view key, std::string_view detail);
  // Refuses the keys that were neither read nor asked for. Call it after all of them.
  void end();
  // Returns the file's first error.
  const Status& status() const { return file_->status; }

 private:
  struct File {
    std::string name;
    Status status;
  };

  const toml::node* find(std::string_view key);
  std::string path_of(std::string_view key) const;
  void refuse(std::string_view key, const toml::node* found, std::string_view expected);

  std::shared_ptr<File> file_;
  const toml::table* table_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace tierd
