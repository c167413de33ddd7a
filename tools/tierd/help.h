// The texts of tierd --help, without its options.
#pragma once

namespace tierd {

extern const char* const kDescription;
extern const char* const kFooter;     // before the keys of the configuration
extern const char* const kBriefHelp;  // the flags of a first run, on one screen

}  // namespace tierd
