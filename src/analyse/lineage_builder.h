// Builds one Lineage from a pipeline and the columns to show.
// Must not know: output formats, how edges are found.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "analyse/sources.h"
#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

// Used once: build() hands its result away. Keeps references to capture and pipeline.
class LineageBuilder {
 public:
  LineageBuilder(const Capture& capture, const Pipeline& pipeline, std::vector<std::size_t> columns);
  Lineage build();

 private:
  struct SourceParent {
    SourceLine line;
    Evidence evidence = Evidence::kStackTrace;
    bool ambiguous = false;
  };

  bool is_bundle_layer(std::size_t i) const;
  void add_layer(std::size_t i);
  void add_node(std::size_t i, UnitId unit, SnapshotId snapshot);
  SnapshotId kernel_look(UnitId kernel, SnapshotId otherwise) const;
  void connect_layer(std::size_t i);
  void connect(std::size_t i, std::size_t to, std::size_t p, UnitId shown);
  const std::vector<SourceParent>& sources(std::size_t column, std::size_t p);
  void add_edge(std::uint32_t from, std::uint32_t to, Evidence evidence, bool ambiguous);
  void place_sources();
  void name_kinds();
  void add_contradicted();
  static EdgeKind kind_between(const Column& a, const Column& b, std::size_t out, std::size_t in);

  const Capture& capture_;
  const Pipeline& pipeline_;
  std::vector<std::size_t> columns_;
  EdgeFinder edges_;
  AttrNames names_;
  bool both_directions_;
  Lineage result_;
  bool collapse_ = false;  // bundle files are shown as their kernels
  std::map<std::pair<std::uint32_t, UnitId>, std::uint32_t> nodes_;  // (layer, unit) -> node, before sources are placed
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> edge_at_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<SourceParent>> sources_;
  std::vector<std::pair<SourceParent, std::uint32_t>> pending_sources_;
};

}  // namespace kerntrail::analyse
