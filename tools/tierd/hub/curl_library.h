// Loads libcurl when a download needs it. With its dependencies it has thirty libraries and takes six
// megabytes, too much for a run in a small cgroup.
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

// [any thread] Returns the process's libcurl, which stays loaded. Error: not_found where libcurl is not
// installed or lacks a function.
Result<const CurlLibrary*> curl_library();

}  // namespace tierd
