#include "kerntrail/expected.h"

#include <fmt/format.h>

namespace kerntrail {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo: return "io";
    case ErrorCode::kTorn: return "torn-capture";
    case ErrorCode::kSyntax: return "syntax";
    case ErrorCode::kSchema: return "schema";
    case ErrorCode::kReference: return "reference";
    case ErrorCode::kDigest: return "digest";
    case ErrorCode::kTooNew: return "too-new";
    case ErrorCode::kTooLarge: return "too-large";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kUsage: return "usage";
  }
  return "unknown";
}

std::string Error::text() const {
  std::string out;
  if (!path.empty()) out += path + ":";
  if (line != 0) out += fmt::format("{}:", line);
  if (line != 0 && column != 0) out += fmt::format("{}:", column);
  if (!out.empty()) out += ' ';
  return out + fmt::format("{} [{}]", message, error_code_name(code));
}

}  // namespace kerntrail
