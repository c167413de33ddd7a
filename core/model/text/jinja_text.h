// A canonical form of Jinja templates: those with equal output mostly have equal forms. None is run.
#pragma once

#include <string>
#include <string_view>

namespace tierd {

// Returns the template without the white space that Jinja removes: beside "-", after and before block tags
// (trim_blocks and lstrip_blocks, which transformers sets), and inside tags. Strings are unescaped, comments
// removed. Two templates with the same canonical text have the same output.
std::string canonical_jinja(std::string_view text);

}  // namespace tierd
