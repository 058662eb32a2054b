// What an FX graph held at the last look, cheap to compare: every node in order with the identities of its target and
// of its tracked metadata. Tells which nodes were made, erased or changed since.
// Must not know: passes, what a value means, the capture file.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace kerntrail::probe {

namespace nb = nanobind;

// Metadata keys that are compared, in this order.
inline constexpr std::array<const char*, 5> kWatchedKeys = {"stack_trace", "nn_module_stack", "source_fn_stack",
                                                            "original_aten", "from_node"};

struct GraphChanges {
  std::vector<nb::object> created, erased;
  std::vector<nb::object> changed;     // other tracked metadata
  std::vector<nb::object> retargeted;  // other target
  bool any() const { return !created.empty() || !erased.empty() || !changed.empty() || !retargeted.empty(); }
};

class GraphWatch {
 public:
  // Brings the watch up to date with `graph` (an fx.Graph; it may be another one than last time) and tells what
  // differs. Values changed in place are noticed where their length changes.
  GraphChanges update(nb::handle graph);

 private:
  struct Value {
    nb::object object;
    Py_ssize_t size = 0;
  };
  struct Seen {
    nb::object node;
    nb::object target;
    std::array<Value, kWatchedKeys.size()> meta;
    std::uint64_t meta_version = 0;  // of the dict, where Python counts its changes; else 0
  };
  static bool refresh(Seen& seen, GraphChanges* changes);

  std::vector<Seen> nodes_;
};

}  // namespace kerntrail::probe
