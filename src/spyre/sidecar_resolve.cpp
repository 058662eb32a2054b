#include "spyre/sidecar_resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "spyre/event_name.h"
#include "spyre/sidecar_rules.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

// What of a set of occurrences agrees and what does not.
Json summary_of(const JsonArray& occurrences) {
  bool ambiguous = false;
  JsonObject fields;
  for (const std::string_view name :
       {"identityKey", "compileId", "compilerKernelName", "registrations", "selector", "upstreamJoin"}) {
    JsonArray values;
    for (const Json& occurrence : occurrences) {
      if (std::ranges::find(values, occurrence[name]) == values.end()) values.push_back(occurrence[name]);
    }
    const bool several = values.size() > 1;
    ambiguous = ambiguous || several;
    JsonObject field{{"ambiguous", several}};
    if (several)
      field.emplace_back("values", std::move(values));
    else
      field.emplace_back("value", values.empty() ? Json() : values.front());
    fields.emplace_back(std::string(name), std::move(field));
  }
  return JsonObject{{"ambiguous", ambiguous}, {"fields", std::move(fields)}};
}

class Resolution {
 public:
  explicit Resolution(std::string_view event, const std::optional<std::string>& selector)
      : name_(event), selector_(selector) {}

  Json resolve(const Expected<Sidecar>& sidecar) {
    const auto event = parse_event_name(name_);
    if (!event) error("invalid-event-name", event.error().message);
    if (selector_ && selector_->empty())
      error("invalid-selector", "the selector is empty; leave it out to see every occurrence");
    if (!sidecar) error(sidecar_diagnostic(sidecar.error().code), sidecar.error().text());
    if (event) name_parts(*event);
    if (event && sidecar && !failed_) look_up(*event, *sidecar);
    return finish();
  }

 private:
  void say(std::string_view code, std::string_view severity, std::string message, Json details = {}) {
    JsonObject entry{{"code", code}, {"severity", severity}, {"message", std::move(message)}};
    if (!details.is_null()) entry.emplace_back("details", std::move(details));
    diagnostics_.push_back(std::move(entry));
    failed_ = failed_ || severity == "error";
    warned_ = warned_ || severity == "warning";
  }
  void error(std::string_view code, std::string message) { say(code, "error", std::move(message)); }

  void name_parts(const EventName& event) {
    base_name_ = event.base_name;
    key_ = event.key;
    if (event.step) {
      // Beyond int64 as a number that JSON still holds; the digits are beside it.
      step_ = *event.step <= INT64_MAX ? Json(static_cast<std::int64_t>(*event.step))
                                       : Json(static_cast<double>(*event.step));
      step_text_ = event.step_text;
    }
  }

  void look_up(const EventName& event, const Sidecar& sidecar) {
    const auto found = sidecar.identities.find(event.key);
    if (found == sidecar.identities.end())
      return error("missing-key", fmt::format("the sidecar has no kernel {}: it is of another run", event.key));
    const KernelIdentity& identity = found->second;
    if (identity.event_base != event.base_name) {
      return error("collision", fmt::format("kernel {} is called {} in the sidecar: two kernels share a key, or the "
                                            "name was changed",
                                            event.key, identity.event_base));
    }
    identity_ = to_json(identity);
    direct_ = identity.direct_handles;
    for (const std::string& id : reachable_handles(sidecar, direct_)) {
      handles_.emplace_back(id, to_json(sidecar.handles.find(id)->second));
      if (std::ranges::find(direct_, id) == direct_.end()) fused_.push_back(id);
    }
    add_occurrences(event.key, sidecar);
    add_warnings(sidecar);
  }

  void add_occurrences(const std::string& key, const Sidecar& sidecar) {
    for (const auto& [id, occurrence] : sidecar.occurrences) {
      if (occurrence.identity != key || (selector_ && occurrence.selector != *selector_)) continue;
      const Projection& projection = sidecar.projections.find(occurrence.compile)->second;
      Json entry = to_json(occurrence);
      entry.set("occurrenceId", id);
      entry.set("upstreamJoin", upstream_join_name(projection.join));
      occurrences_.push_back(std::move(entry));
      joins_.insert(projection.join);
      projections_.emplace(occurrence.compile, &projection);
    }
    if (selector_ && occurrences_.empty())
      error("invalid-selector", fmt::format("no occurrence of the kernel has the selector \"{}\"", *selector_));
  }

  void add_warnings(const Sidecar& sidecar) {
    if (!sidecar.complete)
      say("incomplete-artifact", "warning", "the sidecar is partial: a kernel or a mapping of some compile is missing");
    for (const UpstreamJoin join : joins_) {
      const bool ok = join == UpstreamJoin::kOk;
      say("upstream-join-status", ok ? "info" : "warning",
          fmt::format("torch's node mapping: {}", upstream_join_name(join)),
          JsonObject{{"upstreamJoin", upstream_join_name(join)}});
    }
    if (occurrences_.size() > 1) {
      say("ambiguity", "warning",
          fmt::format("{} occurrences have this key, and the event does not say which one ran", occurrences_.size()));
    }
  }

  Json event_json() const {
    const auto known = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    return JsonObject{{"name", name_},
                      {"baseName", known(base_name_)},
                      {"identityKey", known(key_)},
                      {"commandStep", step_},
                      {"commandStepSuffix", known(step_text_)},
                      {"stepAttribution", "bundle"},
                      {"occurrenceSelector", selector_ ? Json(*selector_) : Json()}};
  }

  Json finish() {
    const auto names = [](const Names& list) { return JsonArray(list.begin(), list.end()); };
    JsonObject projections;
    for (const auto& [id, projection] : projections_) projections.emplace_back(id, to_json(*projection));
    Json summary = summary_of(occurrences_);
    return JsonObject{{"resolutionVersion", 1},
                      {"status", failed_   ? "error"
                                 : warned_ ? "partial"
                                           : "complete"},
                      {"event", event_json()},
                      {"identityKey", key_.empty() ? Json() : Json(key_)},
                      {"identity", std::move(identity_)},
                      {"directHandleIds", names(direct_)},
                      {"fusedConstituentIds", names(fused_)},
                      {"handles", std::move(handles_)},
                      {"occurrences", std::move(occurrences_)},
                      {"occurrenceSummary", std::move(summary)},
                      {"upstreamProjections", std::move(projections)},
                      {"diagnostics", std::move(diagnostics_)}};
  }

  std::string name_, base_name_, key_, step_text_;
  const std::optional<std::string>& selector_;
  Json step_, identity_;
  Names direct_, fused_;
  JsonObject handles_;
  JsonArray occurrences_, diagnostics_;
  std::set<UpstreamJoin> joins_;
  NameMap<const Projection*> projections_;
  bool failed_ = false;
  bool warned_ = false;
};

}  // namespace

Json resolve_event(std::string_view event, const Expected<Sidecar>& sidecar,
                   const std::optional<std::string>& selector) {
  return Resolution(event, selector).resolve(sidecar);
}

}  // namespace kerntrail::spyre
