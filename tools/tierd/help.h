// What tierd --help says beside its options.
#pragma once

namespace tierd {

extern const char* const kDescription;
extern const char* const kFooter;     // before the keys of the configuration
extern const char* const kBriefHelp;  // what a first run needs, on one screen

}  // namespace tierd
