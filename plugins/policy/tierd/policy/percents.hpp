// A parameter that is a list of percents, such as "25/25/50". Optional; C++17, header-only.
#ifndef TIERD_POLICY_PERCENTS_HPP
#define TIERD_POLICY_PERCENTS_HPP

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Returns the shares of 1 that `list` names. Throws Failure, with the name of the parameter, if one of them
// is not a number from 0 to 100.
inline std::vector<double> percents(const std::string& parameter, const std::string& list) {
  constexpr size_t kShown = 40;
  std::vector<double> shares;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find('/', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    const bool digits = !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
    size_t read = 0;
    double percent = -1;
    try {
      if (digits) percent = std::stod(word, &read);
    } catch (const std::exception&) {
      read = 0;  // such as "." alone
    }
    if (read != word.size() || percent < 0 || percent > 100) {
      throw Failure(TIERD_E_UNSUPPORTED,
                    parameter + " is '" + list.substr(0, kShown) + "', expected percents such as 25/25/50");
    }
    shares.push_back(percent / 100);
    begin = end + 1;
  }
  return shares;
}

}  // namespace tierd
#endif
