// What `info` says of a capture: who wrote it, which compiles and stages are in it, what was not observed.
// Must not know: how it is printed; conclusions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::read {

struct StageSummary {
  std::string key;
  std::string title;
  std::string noun;
  std::uint64_t snapshots = 0;
  std::uint64_t units = 0;    // over all its snapshots
  std::uint64_t counted = 0;  // without those whose `op` is placeholder or output
};

struct GraphSummary {
  std::string name;  // "c0.g1"
  std::string kind;
  std::string direction;
  std::string path;
  std::uint64_t units = 0;
};

struct CompileSummary {
  std::string name;  // "c0"
  std::string torch_id;
  std::int64_t attempt = 0;
  std::string backend;
  Settings attributes;
  std::vector<GraphSummary> graphs;
  std::vector<StageSummary> stages;  // in column order, those with a snapshot
  std::vector<std::pair<std::string, std::uint64_t>> kernels;  // by class, sorted; "" where nothing decides it
};

struct CaptureInfo {
  RunInfo run;
  bool torn = false;
  bool complete = false;
  std::vector<CompileSummary> compiles;
  std::uint64_t hooks = 0;
  std::vector<HookRecord> missing_hooks;   // absent or failed
  std::vector<HookRecord> troubled_hooks;  // with errors, or not put back
  std::uint64_t texts = 0, locs = 0, units = 0, snapshots = 0, links = 0, claims = 0;
  std::vector<std::string> sources;  // files with embedded lines or a hash
  std::vector<Note> notes;           // the torn-capture note included
};

CaptureInfo capture_info(const Capture& capture);
Expected<CaptureInfo> capture_info(const std::string& path);

}  // namespace kerntrail::read
