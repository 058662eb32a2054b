// A device guard for a CUDA device that does not exist: fake tensors "on" it are made and moved, none is read.
#include <c10/core/impl/DeviceGuardImplInterface.h>

static c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> guard;

extern "C" int install_guard() {
  if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return 0;
  c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, &guard);
  return 1;
}
