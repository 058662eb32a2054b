#include "kerntrail/version.h"

namespace kerntrail {

std::string_view version() { return KERNTRAIL_VERSION; }

}  // namespace kerntrail
