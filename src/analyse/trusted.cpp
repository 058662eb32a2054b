#include "analyse/trusted.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyse/values.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

bool is_retargeted(const Capture& capture, UnitId unit, SnapshotId at) {
  const PassId pass = capture.snapshots[index(at)].pass;
  if (!has(pass)) return false;
  const auto& units = capture.passes[index(pass)].retargeted;
  return std::find(units.begin(), units.end(), unit) != units.end();
}

void add_once(std::vector<SourceKey>& lines, const SourceKey& line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

}  // namespace

TrustedValue trusted_value(const Capture& capture, UnitId unit, AttrId attr, SnapshotId until) {
  TrustedValue result;
  if (!has(attr)) return result;
  const ValueType type = capture.attr_kinds[index(attr)].type;
  capture.each_version(unit, attr, [&](SnapshotId since, const Observation& seen) {
    if (since > until || seen.state != State::kPresent) return;
    const bool kept = result.value == nullptr || kept_of(capture, type, *result.value, seen) == Kept::kAll;
    if (kept || is_retargeted(capture, unit, since)) {
      result = {&seen, SnapshotId::kNone};
    } else if (!has(result.overwritten)) {
      result.overwritten = since;
    }
  });
  return result;
}

std::optional<SourceLine> trusted_source(const Capture& capture, AttrId stack_trace, UnitId unit, SnapshotId until) {
  return source_in(capture, trusted_value(capture, unit, stack_trace, until).value);
}

TrueSources::TrueSources(const Capture& capture, const PassIndex& passes) : capture_(capture), passes_(passes) {
  if (const auto attr = capture.find_attr("stack_trace")) stack_trace_ = *attr;
}

void TrueSources::note_code(const Observation& stack) {
  if (!has(stack.loc)) return;
  const Loc* loc = capture_.innermost_user(stack.loc);
  if (loc != nullptr && has(loc->code)) codes_.try_emplace(SourceKey{loc->text, loc->line}, loc->code);
}

std::string_view TrueSources::code(const SourceKey& line) const {
  const auto found = codes_.find(line);
  return found == codes_.end() ? std::string_view() : base::trim(capture_.text(found->second));
}

// Nodes are made of nodes of earlier graphs, in chains as long as the capture: worked off with a stack of its own.
const TrueSource& TrueSources::of(UnitId unit) {
  std::vector<UnitId> work{unit};
  while (!work.empty()) {
    const UnitId next = work.back();
    std::vector<UnitId> needed;
    if (known_.count(next) != 0 || decide(next, needed)) {
      work.pop_back();
    } else {
      work.insert(work.end(), needed.begin(), needed.end());
    }
  }
  return known_.at(unit);
}

bool TrueSources::is_being_decided(UnitId unit) const {
  const auto found = deciding_.find(unit);
  return found != deciding_.end() && found->second;
}

bool TrueSources::decide(UnitId unit, std::vector<UnitId>& needed) {
  deciding_[unit] = true;
  std::vector<SourceKey> sources;
  for (UnitId source : passes_.charged(unit).sources) {
    const auto known = known_.find(source);
    if (known != known_.end()) {
      for (const SourceKey& line : known->second.lines) add_once(sources, line);
    } else if (!is_being_decided(source)) {  // else a circle of evidence: it says nothing
      needed.push_back(source);
    }
  }
  if (!needed.empty()) return false;
  TrueSource result;
  const auto whole = id_at<SnapshotId>(capture_.snapshots.empty() ? 0 : capture_.snapshots.size() - 1);
  const TrustedValue own = trusted_value(capture_, unit, stack_trace_, whole);
  std::optional<SourceKey> line;
  if (own.value != nullptr) {
    line = line_of(capture_, *own.value);
    note_code(*own.value);
    result.overwritten = own.overwritten;
    capture_.each_version(unit, stack_trace_, [&](SnapshotId, const Observation& seen) {
      if (seen.state != State::kPresent) {
        result.named.reset();
        return;
      }
      result.named = line_of(capture_, seen);
      note_code(seen);
    });
  }
  const bool among = line && std::find(sources.begin(), sources.end(), *line) != sources.end();
  if (line && (among || sources.empty())) {
    result.lines = {*line};
  } else {
    result.wrong_at_birth = line.has_value();
    result.lines = std::move(sources);
  }
  deciding_[unit] = false;
  known_.emplace(unit, std::move(result));
  return true;
}

std::optional<Rewrite> rewrite_of(const Capture& capture, TrueSources& sources, SiteTable& sites, UnitId node) {
  const TrueSource& source = sources.of(node);
  if (!source.named || source.lines.empty()) return std::nullopt;
  if (std::find(source.lines.begin(), source.lines.end(), *source.named) != source.lines.end()) return std::nullopt;
  const auto text = [&](const SourceKey& line) { return fmt::format("{}:{}", capture.text(line.file), line.line); };
  Rewrite out{node, {}, text(*source.named), !has(source.overwritten), {}, {}, false};
  for (const SourceKey& line : source.lines) out.was.push_back(text(line));
  if (has(source.overwritten)) {
    const DropSite& site = sites[sites.change(source.overwritten)];
    out.pass = site.title;
    out.place = site.place;
    out.place_is_pass = site.by_pass && !site.by_call;
  }
  return out;
}

}  // namespace kerntrail::analyse
