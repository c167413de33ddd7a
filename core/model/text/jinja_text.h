// The text of a Jinja template in a form in which templates that write the same are mostly the same. It is
// never run.
#pragma once

#include <string>
#include <string_view>

namespace tierd {

// Returns the template without the white space that Jinja takes: beside "-", after and before the tags of
// blocks (trim_blocks and lstrip_blocks, which transformers sets), and inside tags. Strings are as they read,
// comments are gone. Two templates of one canonical text write the same texts.
std::string canonical_jinja(std::string_view text);

}  // namespace tierd
