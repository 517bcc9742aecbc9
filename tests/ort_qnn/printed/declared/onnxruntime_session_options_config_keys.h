// The names that the page gives for the keys of its text.
#pragma once
#include "onnxruntime_cxx_api.h"

constexpr const char* kOrtSessionOptionEpContextEnable = "ep.context_enable";
constexpr const char* kOrtSessionOptionEpContextFilePath = "ep.context_file_path";
constexpr const char* kOrtSessionOptionEpContextEmbedMode = "ep.context_embed_mode";
