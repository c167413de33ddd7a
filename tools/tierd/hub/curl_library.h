// libcurl is loaded when something is to be downloaded. With what it needs it is thirty libraries and six
// megabytes, for which a run in a small cgroup has other uses.
#pragma once

#include <curl/curl.h>

#include "core/base/result.h"

namespace tierd {

struct CurlLibrary {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_set) url_set;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_free) free;
};

// Returns the one of the whole process, which stays loaded. [any thread] Error: not_found where libcurl is
// not installed, or has not what is needed.
Result<const CurlLibrary*> curl_library();

}  // namespace tierd
