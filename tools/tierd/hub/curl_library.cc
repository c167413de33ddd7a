#include "tools/tierd/hub/curl_library.h"

#include <dlfcn.h>

#include <string>

namespace tierd {
namespace {

constexpr const char* kFile = "libcurl.so.4";

Error missing() {
  const char* const why = ::dlerror();
  return {Code::not_found, kFile,
          std::string("downloading models needs libcurl 7.85 or later, which cannot be loaded (install it on "
                      "Debian with apt install libcurl4): ") +
              (why != nullptr ? why : "it cannot be set up")};
}

Result<CurlLibrary> load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing();
  CurlLibrary curl{};
  bool found = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    found = found && function != nullptr;
  };
  find(curl.global_init, "curl_global_init");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_reset, "curl_easy_reset");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_perform, "curl_easy_perform");
  find(curl.easy_getinfo, "curl_easy_getinfo");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  find(curl.url, "curl_url");
  find(curl.url_set, "curl_url_set");
  find(curl.url_get, "curl_url_get");
  find(curl.url_cleanup, "curl_url_cleanup");
  find(curl.free, "curl_free");
  if (!found || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return missing();
  return curl;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> kLoaded = load();
  if (!kLoaded.ok()) return kLoaded.error();
  return &*kLoaded;
}

}  // namespace tierd
