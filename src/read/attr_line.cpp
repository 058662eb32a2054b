#include "read/attr_line.h"

namespace kerntrail::read {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool literal(std::string_view wanted) {
    if (static_cast<std::size_t>(end_ - at_) < wanted.size() || std::string_view(at_, wanted.size()) != wanted)
      return false;
    at_ += wanted.size();
    return true;
  }

  // A string of printable ASCII without escapes, from behind its first quote; takes the last.
  bool name(std::string_view& out) {
    const char* start = at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ < ' ' || *at_ == '\\' || static_cast<unsigned char>(*at_) >= 0x7F) return false;
      ++at_;
    }
    if (at_ == end_) return false;
    out = {start, static_cast<std::size_t>(at_ - start)};
    ++at_;
    return true;
  }

  // At most nine digits without a leading zero: always an id.
  bool number(std::uint32_t& out) {
    const char* start = at_;
    std::uint32_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - start < 10) {
      value = value * 10 + static_cast<std::uint32_t>(*at_ - '0');
      ++at_;
    }
    const auto digits = at_ - start;
    out = value;
    return digits > 0 && digits < 10 && (digits == 1 || *start != '0');
  }

  bool names(std::vector<std::string_view>& out) {
    if (literal("]")) return true;
    do {
      std::string_view one;
      if (!literal("\"") || !name(one)) return false;
      out.push_back(one);
    } while (literal(","));
    return literal("]");
  }

  bool finished() const { return at_ == end_; }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

bool scan_attr_line(std::string_view line, AttrLine& out) {
  Scanner scan(line);
  if (!scan.literal(R"({"record":"attr","unit":")") || !scan.name(out.unit) || !scan.literal(R"(,"attr":")") ||
      !scan.name(out.attr) || !scan.literal(R"(,"at":)") || !scan.number(out.at) || !scan.literal(R"(,"state":")") ||
      !scan.name(out.state))
    return false;
  out.python_type = out.repr = out.text = out.loc = kNoIndex;
  out.refs.clear();
  if (scan.literal(R"(,"python_type":)") && !scan.number(out.python_type)) return false;
  if (scan.literal(R"(,"repr":)") && !scan.number(out.repr)) return false;
  if (scan.literal(R"(,"text":)") && !scan.number(out.text)) return false;
  if (scan.literal(R"(,"loc":)") && !scan.number(out.loc)) return false;
  if (scan.literal(R"(,"refs":[)") && !scan.names(out.refs)) return false;
  return scan.literal("}") && scan.finished();
}

}  // namespace kerntrail::read
