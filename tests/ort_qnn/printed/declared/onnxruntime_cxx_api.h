// What the page's C and C++ use of ONNX Runtime's interface, declared anew from that use: each call writes what it
// was told to the standard output, so that a test can do the same through openqnn.InferenceSession.
#pragma once
#include <cstdio>
#include <string>
#include <unordered_map>

constexpr int ORT_API_VERSION = 1;
enum OrtLoggingLevel { ORT_LOGGING_LEVEL_ERROR };
struct OrtStatus;
struct OrtSessionOptions {};

inline OrtStatus* Tell(const char* kind, const std::string& key, const std::string& value) {
  std::printf("%s\t%s\t%s\n", kind, key.c_str(), value.c_str());
  return nullptr;
}

struct OrtApi {
  static OrtStatus* CreateSessionOptions(OrtSessionOptions** made) {
    static OrtSessionOptions options;
    *made = &options;
    return nullptr;
  }
  static OrtStatus* AddSessionConfigEntry(OrtSessionOptions*, const char* key, const char* value) {
    return Tell("entry", key, value);
  }
};

struct OrtApiBase {
  static const OrtApi* GetApi(int) {
    static const OrtApi api;
    return &api;
  }
};

inline const OrtApiBase* OrtGetApiBase() {
  static const OrtApiBase base;
  return &base;
}

inline void CheckStatus(const OrtApi*, OrtStatus*) {}

namespace Ort {
struct Env {
  Env(OrtLoggingLevel, const char*) {}
};
struct SessionOptions {
  void AddConfigEntry(const char* key, const char* value) { Tell("entry", key, value); }
  void AppendExecutionProvider(const std::string& name, const std::unordered_map<std::string, std::string>& options) {
    for (const auto& [key, value] : options) Tell(name.c_str(), key, value);
  }
};
struct Session {
  Session(Env&, const char* path, const SessionOptions&) { Tell("session", path, ""); }
};
}  // namespace Ort
