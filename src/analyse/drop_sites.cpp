#include "analyse/drop_sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyse/pass_path.h"

namespace kerntrail {

std::string place_text(const Capture& capture, LocId loc) {
  const Loc* frame = analyse::innermost_frame(capture, loc);
  if (frame == nullptr) return {};
  std::string out(capture.text(frame->text));
  if (frame->line > 0) out += fmt::format(":{}", frame->line);
  if (has(frame->function)) out += fmt::format(" ({})", capture.text(frame->function));
  return out;
}

namespace analyse {

const Loc* innermost_frame(const Capture& capture, LocId chain) {
  // Bounded: a hostile file could make a chain of any length.
  for (int steps = 0; steps < 10000; ++steps) {
    const Loc* loc = capture.loc(chain);
    if (loc == nullptr) return nullptr;
    switch (loc->kind) {
      case LocKind::kRange: return loc;
      case LocKind::kCall:
      case LocKind::kNamed: chain = loc->child; break;
      case LocKind::kFused:
        if (loc->parts.empty()) return nullptr;
        chain = loc->parts.front();
        break;
      case LocKind::kOpaque: return nullptr;
    }
  }
  return nullptr;
}

namespace {

constexpr std::size_t kMaxFrames = 32;  // no reader follows more

// Frames of a call chain, innermost first.
std::vector<std::string> frames_of(const Capture& capture, LocId chain) {
  std::vector<std::string> result;
  std::vector<LocId> open{chain};
  for (int steps = 0; !open.empty() && steps < 10000 && result.size() < kMaxFrames; ++steps) {
    const LocId here = open.back();
    open.pop_back();
    const Loc* loc = capture.loc(here);
    if (loc == nullptr) continue;
    if (loc->kind == LocKind::kRange) result.push_back(place_text(capture, here));
    if (has(loc->caller)) open.push_back(loc->caller);
    if (has(loc->child)) open.push_back(loc->child);
    open.insert(open.end(), loc->parts.rbegin(), loc->parts.rend());
  }
  return result;
}

}  // namespace

std::uint32_t SiteTable::add(DropSite site) {
  site.place = place_text(capture_, site.line);
  site.frames = frames_of(capture_, site.chain);
  Key key{site.kind, site.pass, site.pattern, site.line, site.from, site.to, site.after_pass};
  auto [place, fresh] = known_.try_emplace(std::move(key), static_cast<std::uint32_t>(sites_.size()));
  if (fresh) sites_.push_back(std::move(site));
  return place->second;
}

std::string SiteTable::stage_key(SnapshotId look) const {
  if (!has(look) || !has(capture_.snapshots[index(look)].stage)) return {};
  return capture_.stages[index(capture_.snapshots[index(look)].stage)].key;
}

DropSite SiteTable::in_pass(PassId id) const {
  const Pass& pass = capture_.passes[index(id)];
  DropSite site;
  site.kind = pass.kind == PassKind::kGap ? SiteKind::kGap : SiteKind::kPass;
  site.pass = id;
  site.title = pass.kind == PassKind::kPass ? path_text(capture_, id) : pass.name;
  site.subsystem = pass.subsystem;
  site.line = pass.loc;
  site.chain = pass.loc;
  site.by_pass = has(pass.loc);
  site.by_call = capture_.graphs[index(pass.graph)].kind == "ir";  // the probe sees these from where they are called
  return site;
}

std::uint32_t SiteTable::birth(const ChargedBirth& charged, const std::string& from, const std::string& to,
                               SnapshotId at) {
  const Birth& birth = *charged.birth;
  DropSite site;
  if (has(birth.pass)) {
    site = in_pass(birth.pass);
  } else {
    const bool traced = charged.evidence == "frame";
    site.kind = traced ? SiteKind::kTracing : charged.evidence == "copy" ? SiteKind::kCopy : SiteKind::kBorder;
    site.from = from;
    site.to = to;
    const std::string_view verb = traced ? "tracing" : site.kind == SiteKind::kCopy ? "copying" : "between";
    site.title = fmt::format("{} {} {} {}", verb, from.empty() ? "another graph" : from,
                             site.kind == SiteKind::kBorder ? "and" : "to", to.empty() ? "another graph" : to);
  }
  if (charged.evidence == "match") site.pattern = birth.pattern;
  if (has(birth.loc)) site.chain = birth.loc;
  const bool by_pattern = charged.evidence == "match" && has(birth.pattern_loc);
  if (by_pattern || has(birth.loc)) {
    site.line = by_pattern ? birth.pattern_loc : birth.loc;
    site.by_pass = false;
  }
  site.at = at;
  // Chains differ in their outer frames: one place is one innermost frame.
  if (const Loc* frame = innermost_frame(capture_, site.line)) {
    for (LocId next = site.line; has(next);) {
      const Loc* loc = capture_.loc(next);
      if (loc == frame) site.line = next;
      if (loc == frame || loc == nullptr) break;
      next = loc->kind == LocKind::kFused ? loc->parts.front() : loc->child;
    }
  }
  return add(std::move(site));
}

std::uint32_t SiteTable::change(SnapshotId at) {
  const Snapshot& look = capture_.snapshots[index(at)];
  if (has(look.pass)) {
    DropSite site = in_pass(look.pass);
    site.at = at;
    return add(std::move(site));
  }
  const SnapshotId before = passes_.look_before(at);
  const std::string from = stage_key(before);
  if (has(before) && has(capture_.snapshots[index(before)].pass)) {
    DropSite site;
    site.kind = SiteKind::kBorder;
    site.after_pass = capture_.passes[index(capture_.snapshots[index(before)].pass)].name;
    site.to = stage_key(at);
    site.title = fmt::format("between pass {} and {}", site.after_pass, site.to);
    site.at = at;
    return add(std::move(site));
  }
  return border(from, stage_key(at), at);
}

std::uint32_t SiteTable::border(const std::string& from, const std::string& to, SnapshotId at) {
  DropSite site;
  site.kind = SiteKind::kBorder;
  site.from = from;
  site.to = to;
  site.title = from.empty() ? fmt::format("before {}", to) : fmt::format("between {} and {}", from, to);
  site.at = at;
  return add(std::move(site));
}

}  // namespace analyse
}  // namespace kerntrail
