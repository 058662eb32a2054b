// Fuzz target: bytes as a sidecar. The reader must give a sidecar that keeps its rules or an error with a reason; what
// it gives must print to a text that reads as the same, merge with itself, and resolve its own events.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spyre/sidecar.h"
#include "spyre/sidecar_merge.h"
#include "spyre/sidecar_resolve.h"

namespace {

void hold(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kerntrail::spyre;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto sidecar = parse_sidecar(bytes, "input");
  if (!sidecar) {
    hold(!sidecar.error().message.empty());
    return 0;
  }
  const auto again = parse_sidecar(print_sidecar(*sidecar));
  hold(again && *again == *sidecar);
  const auto merged = merge_sidecars(*sidecar, *again);
  hold(merged.has_value());
  for (const auto& [key, identity] : sidecar->identities)
    hold(resolve_event(identity.event_base, sidecar)["identityKey"].as_string() == key);
  return 0;
}
