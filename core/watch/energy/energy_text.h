// Energy and carbon as text with three digits: "2.34 J", "12 mJ", "1.2 kJ"; "0.53 mg", "1.2 g".
#pragma once

#include <string>

namespace tierd {

std::string format_joules(double joules);
std::string format_grams(double grams);
// "0.53 mg of it embodied", or that no embodied mass is described.
std::string embodied_text(double grams);

}  // namespace tierd
