// The arguments of programs that read a model and write it as a store or as a GGUF file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/write_options.h"
#include "tools/command_line/command_line.h"
#include "tools/store_arguments/store_arguments.h"

namespace tierd {

struct Conversion {
  std::string source;
  std::string out;  // after parse(): without a slash at its end
  std::string tokenizer;
  StoreArguments store;
  bool verify = false;
  bool quiet = false;

  // Adds all but SOURCE and OUT, which each program explains.
  void add_to(CommandLine& line);
  // Removes slashes at the end of OUT. Error: invalid_argument, for arguments of stores with a GGUF file.
  Status complete();

  bool makes_gguf() const { return out.ends_with(".gguf"); }
  // Errors: those of the codec's parameters and of the numbers.
  Result<WriteOptions> options() const;
  Result<std::unique_ptr<TensorSource>> open() const;
  // Checks that there is no file OUT. `what` is made: "a GGUF file".
  Status check_new(std::string_view what) const;
  Status write(const TensorSource& model, const WriteOptions& options) const;
  // Verifies the store in `directory` if that was asked for, and prints its summary.
  Status finish(const std::string& directory) const;
};

}  // namespace tierd
