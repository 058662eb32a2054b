// The result type of everything that can fail on input: a value, or an Error that says what, where and why.
// Must not know: any format. The list of codes is closed; tests and scripts may rely on the names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace kerntrail {

enum class ErrorCode : std::uint8_t {
  kIo,           // a file could not be opened, read or written; message holds the system's reason
  kTorn,         // input stops before its end record: the writer was killed, or the copy was cut
  kSyntax,       // not JSON, not UTF-8, or a damaged compressed stream
  kSchema,       // JSON, but a field is missing, of the wrong type or out of range
  kReference,    // an id that was never declared, or declared twice
  kDigest,       // replayed differences do not reach a snapshot's digest
  kTooNew,       // written by a newer format version than this build reads
  kTooLarge,     // a record, a nesting depth or a count over the stated limit
  kUnsupported,  // well-formed, but outside what this version carries; message says what
  kUsage,        // the caller asked for something that does not exist
};

// Stable spelling, e.g. "torn-capture"; used in messages and JSON output.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;     // one sentence, no trailing dot
  std::string path = {};   // file (or "-" for standard input); empty where there is none
  std::uint64_t line = 0;  // 1-based line of the record, 0 where there is none
  std::uint64_t column = 0;  // 1-based, in bytes; 0 where only the line is known

  // "path:line:column: message [code]", leaving out what is unknown.
  std::string text() const;
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string path = {}, std::uint64_t line = 0) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(path), line});
}

}  // namespace kerntrail

// Hands an Error up: `KERNTRAIL_TRY(auto x, f());`
#define KERNTRAIL_CONCAT_INNER(a, b) a##b
#define KERNTRAIL_CONCAT(a, b) KERNTRAIL_CONCAT_INNER(a, b)
#define KERNTRAIL_TRY_INNER(tmp, decl, expr)               \
  auto tmp = (expr);                                       \
  if (!tmp) return tl::unexpected(std::move(tmp.error())); \
  decl = std::move(*tmp)
#define KERNTRAIL_TRY(decl, expr) KERNTRAIL_TRY_INNER(KERNTRAIL_CONCAT(kerntrail_try_, __LINE__), decl, expr)
#define KERNTRAIL_CHECK(expr)                                                        \
  do {                                                                               \
    auto kerntrail_check = (expr);                                                   \
    if (!kerntrail_check) return tl::unexpected(std::move(kerntrail_check.error())); \
  } while (false)
