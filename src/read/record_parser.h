// One line of NDJSON -> the members of one record, with their types checked. The first mistake is kept; getters called
// after it give defaults, so that a caller may read a whole record and look once.
// Must not know: which records exist, what their members mean.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::read {

class RecordParser {
 public:
  RecordParser();
  ~RecordParser();
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  // `line` must be followed by kLinePadding readable bytes. Views given out below live until the next call.
  // kSyntax: no JSON. kTooLarge: nested deeper than 64. kSchema: no object, or "record" is not its first member.
  bool parse(std::string_view line);
  std::string_view kind() const { return kind_; }
  // A member by name, before expect(): its value if it is there and an integer.
  std::optional<std::int64_t> peek_integer(std::string_view name) const;
  // Names the members that this kind of record may have; a member is then known by its place in `names`.
  // kSchema for any other member and for one that is there twice.
  bool expect(std::span<const std::string_view> names);

  bool has(std::size_t i) const;
  std::string_view text(std::size_t i);                             // must be there
  std::string_view text(std::size_t i, std::string_view otherwise);
  std::int64_t integer(std::size_t i, std::int64_t low, std::int64_t high);
  std::int64_t integer(std::size_t i, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  std::uint64_t count(std::size_t i);  // 0 where absent
  bool boolean(std::size_t i, bool otherwise);
  // The bytes of the member's value as they stand in the line.
  std::string_view raw(std::size_t i);
  // Arrays and objects; empty where absent. Keys of objects are checked to be there once.
  const std::vector<std::string_view>& texts(std::size_t i);
  const std::vector<std::int64_t>& integers(std::size_t i, std::int64_t low, std::int64_t high);
  const std::vector<std::pair<std::string_view, std::string_view>>& text_members(std::size_t i);
  const std::vector<std::pair<std::string_view, std::uint64_t>>& count_members(std::size_t i);

  bool ok() const { return !error_; }
  const std::optional<Error>& error() const { return error_; }
  bool refuse(ErrorCode code, std::string message);  // keeps the first; always false

 private:
  struct Document;
  bool missing(std::size_t i);
  bool wrong_type(std::size_t i, std::string_view wanted);

  std::unique_ptr<Document> document_;
  std::string_view line_;
  std::string_view kind_;
  std::span<const std::string_view> names_;
  std::optional<Error> error_;
  std::vector<std::string_view> texts_;
  std::vector<std::int64_t> integers_;
  std::vector<std::pair<std::string_view, std::string_view>> text_members_;
  std::vector<std::pair<std::string_view, std::uint64_t>> count_members_;
};

}  // namespace kerntrail::read
