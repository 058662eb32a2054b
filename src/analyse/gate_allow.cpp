#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "analyse/gate_measure.h"
#include "analyse/pass_path.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr int kSoon = 14;  // days before an entry ends that it is said

bool one_of(const std::string& pattern, const std::vector<std::string_view>& names) {
  return pattern.empty() || std::any_of(names.begin(), names.end(),
                                        [&](std::string_view name) { return base::matches_pattern(name, pattern); });
}

bool fits(std::string_view name, const std::string& pattern) {
  return pattern.empty() || base::matches_pattern(name, pattern);
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

bool pass_matches(std::string_view path, std::string_view pattern) {
  for (;;) {
    if (base::matches_pattern(path, pattern)) return true;
    const std::size_t at = path.find(kWithin);
    if (at == std::string_view::npos) return false;
    path.remove_prefix(at + kWithin.size());
  }
}

std::string day_after(std::string_view day, int days) {
  using namespace std::chrono;
  if (day.size() != 10) return std::string(day);
  const year_month_day date{year{number(day.substr(0, 4))}, month{static_cast<unsigned>(number(day.substr(5, 2)))},
                            std::chrono::day{static_cast<unsigned>(number(day.substr(8, 2)))}};
  if (!date.ok()) return std::string(day);
  const year_month_day later{sys_days(date) + std::chrono::days(days)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(later.year()), static_cast<unsigned>(later.month()),
                     static_cast<unsigned>(later.day()));
}

AllowList::AllowList(const std::vector<AllowEntry>& entries, std::string today)
    : entries_(entries), today_(std::move(today)), used_(entries.size()), hit_expired_(entries.size()) {}

const AllowEntry* AllowList::find(const Subject& subject, const AllowEntry** expired) {
  const AllowEntry* found = nullptr;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const AllowEntry& entry = entries_[i];
    const bool meant = fits(subject.rule, entry.rule) && fits(subject.stage, entry.stage) &&
                       fits(subject.field, entry.field) && fits(subject.place, entry.place) &&
                       one_of(entry.unit, subject.units) &&
                       (entry.pass.empty() || pass_matches(subject.pass, entry.pass));
    if (!meant) continue;
    if (entry.expires < today_) {
      hit_expired_[i] = true;
      if (expired != nullptr && *expired == nullptr) *expired = &entry;
      continue;
    }
    used_[i] = true;
    if (found == nullptr) found = &entry;
  }
  return found;
}

std::vector<std::string> AllowList::notes(const std::string& path) const {
  std::vector<std::string> out;
  const std::string soon = day_after(today_, kSoon);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const AllowEntry& entry = entries_[i];
    const std::string where =
        fmt::format("{}:{}: [[allow]] of {} (\"{}\")", path, entry.at.line, entry.owner, entry.reason);
    if (entry.expires < today_) {
      out.push_back(fmt::format("{} expired on {} and no longer allows anything{}", where, entry.expires,
                                hit_expired_[i] ? "" : "; nothing needs it any more: remove it"));
    } else if (!used_[i]) {
      out.push_back(fmt::format("{} covers nothing in this capture: remove it, or correct what it names", where));
    } else if (entry.expires <= soon) {
      out.push_back(fmt::format("{} ends on {}", where, entry.expires));
    }
  }
  return out;
}

}  // namespace kerntrail::analyse
