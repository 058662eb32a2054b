#include "render/sidecar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"
#include "render/text.h"
#include "spyre/sidecar_rules.h"

namespace kerntrail::render {
namespace {

using base::Json;

// What of a long hash a person needs to tell two of them apart.
std::string_view short_id(std::string_view id) { return id.substr(0, 12); }

struct Origin {
  std::string place;  // "file:line"; "no source line" where the handle has none
  std::string what;   // the operation, and the FX nodes it went through

  auto operator<=>(const Origin&) const = default;
};

std::string origins_text(const std::set<Origin>& origins) {
  std::size_t width = 0;
  for (const Origin& origin : origins) width = std::max(width, origin.place.size());
  std::string out;
  for (const Origin& origin : origins) out += fmt::format("    {:<{}}  {}\n", origin.place, width, origin.what);
  return out;
}

std::string joined(const Json& list) {
  std::vector<std::string> names;
  for (const Json& name : list.as_array()) names.push_back(visible(name.as_string()));
  return base::join(names, ", ");
}

// A handle that is fused from others says less than they do.
std::set<Origin> origins_of(const Json& handles) {
  std::set<Origin> out;
  for (const auto& [id, handle] : handles.as_object()) {
    const Json& source = handle["source"];
    if (source.is_null() && !handle["fused_from"].as_array().empty()) continue;
    const std::string place =
        source.is_null() ? std::string("no source line")
                         : fmt::format("{}:{}", visible(source["file"].as_string()), source["start_line"].as_int());
    const std::string op =
        handle["aten_op"].is_null() ? std::string("several operations") : visible(handle["aten_op"].as_string());
    out.insert({place, fmt::format("{}  ({})", op, joined(handle["ir_chain"]))});
  }
  return out;
}

Json handles_of(const spyre::Sidecar& sidecar, const spyre::KernelIdentity& identity) {
  base::JsonObject out;
  for (const std::string& id : spyre::reachable_handles(sidecar, identity.direct_handles))
    out.emplace_back(id, to_json(sidecar.handles.find(id)->second));
  return out;
}

std::string compile_text(const spyre::Sidecar& sidecar, const std::string& id, const spyre::Projection& projection) {
  std::string out =
      fmt::format("\ncompile {}  torch {}, back end {}, tracking level {}; torch's node mapping: {}{}\n", short_id(id),
                  visible(projection.torch_version), visible(projection.spyre_version), projection.tracking_level,
                  upstream_join_name(projection.join), projection.failed ? ", not taken over whole" : "");
  for (const auto& [name, key] : projection.kernels) {
    const spyre::KernelIdentity& identity = sidecar.identities.find(key)->second;
    out += fmt::format("  {}\n    event {}\n", visible(name), identity.event_base);
    const std::set<Origin> origins = origins_of(handles_of(sidecar, identity));
    out += origins.empty() ? std::string("    no debug handle\n") : origins_text(origins);
  }
  for (const std::string& name : projection.uncollected) out += fmt::format("  {}\n    has no key\n", visible(name));
  return out;
}

// "bundle" covers every operation of the kernel: a step does not name some of them.
std::string event_text(const Json& event) {
  std::string out = visible(event["name"].as_string()) + "\n";
  if (!event["commandStep"].is_null())
    out += fmt::format("  command {} of a launch; the sources are those of the whole kernel\n",
                       visible(event["commandStepSuffix"].as_string()));
  return out;
}

std::string occurrences_text(const Json& resolution) {
  std::string out;
  for (const Json& occurrence : resolution["occurrences"].as_array()) {
    const std::string_view compile = occurrence["compileId"].as_string();
    out += fmt::format("  kernel {} of compile {}\n", visible(occurrence["compilerKernelName"].as_string()),
                       short_id(compile));
    const Json& contexts = resolution["upstreamProjections"][compile]["kernelStackTraces"];
    for (const Json& registration : occurrence["registrations"].as_array()) {
      const Json& context = contexts[registration["alias"].as_string()];
      out += fmt::format("    call {}: pre-grad nodes {}; post-grad nodes {}\n",
                         visible(registration["alias"].as_string()), joined(context["preGradNodes"]),
                         joined(context["postGradNodes"]));
    }
  }
  return out;
}

std::string history_text(const Json& handles) {
  std::set<std::string> lines;
  for (const auto& [id, handle] : handles.as_object()) {
    for (const Json& step : handle["transform_history"].as_array()) {
      const Json& reason = step["reason"];
      lines.insert(fmt::format("    {} by {}{}\n", visible(step["kind"].as_string()),
                               visible(step["pass_name"].as_string()),
                               reason.is_null() ? "" : ": " + visible(reason.as_string())));
    }
  }
  return lines.empty() ? std::string() : fmt::format("  what passes did\n{}", fmt::join(lines, ""));
}

}  // namespace

std::string sidecar_text(const spyre::Sidecar& sidecar, std::string_view name) {
  std::string out = fmt::format("{}: version 1, generation {}, {}; every rule holds\n", visible(name),
                                sidecar.generation, sidecar.complete ? "complete" : "partial");
  out += fmt::format("{}, {} in {}, {}\n", base::counted(sidecar.projections.size(), "compile"),
                     base::counted(sidecar.identities.size(), "kernel identity", "kernel identities"),
                     base::counted(sidecar.occurrences.size(), "occurrence"),
                     base::counted(sidecar.handles.size(), "debug handle"));
  for (const auto& [code, count] : sidecar.diagnostics) out += fmt::format("{}: {}\n", code, count);
  for (const auto& [id, projection] : sidecar.projections) out += compile_text(sidecar, id, projection);
  return out;
}

std::string resolution_text(const Json& resolution) {
  std::string out = event_text(resolution["event"]);
  if (!resolution["identity"].is_null()) {
    const std::set<Origin> origins = origins_of(resolution["handles"]);
    out += origins.empty() ? "  no debug handle: nothing leads to a source line\n" : "  comes from\n";
    out += origins_text(origins) + occurrences_text(resolution) + history_text(resolution["handles"]);
  }
  for (const Json& entry : resolution["diagnostics"].as_array()) {
    out += fmt::format("{} {}: {}\n", entry["severity"].as_string(), entry["code"].as_string(),
                       visible(entry["message"].as_string()));
  }
  return out;
}

}  // namespace kerntrail::render
