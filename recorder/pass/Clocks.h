// Clocks.h: calls that read a clock. They have no effect but on a variable that they are given, whose stores are
// recorded; what they return is another value each time.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// Whether a call reads a clock, and does nothing else that a trace does not show.
bool readsClock(const llvm::CallBase &Call);

/// Where such a call stores the time, and how many bytes of it; null if it only returns it.
struct StoredTime {
  llvm::Value *Place;
  uint64_t Bytes;
};
StoredTime storedTime(const llvm::CallBase &Call);

} // namespace tracekit
