// The chat templates that --chat-template names, for models without one of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tierd {

// Returns the template in Jinja; nothing if there is none of that name.
std::optional<std::string> named_template(std::string_view name);
// The names in the order of the alphabet.
std::vector<std::string_view> template_names();

}  // namespace tierd
