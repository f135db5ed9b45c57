// OwnEffects.h: functions of the C library that read and write nothing but what they are given leads to. LLVM does not
// know that of them; the run-time library records what they read and write.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace tracekit {

/// Whether a function of that name has no effect but on what its arguments lead to, errno aside, and all of it is in
/// the trace: numbers and text that are read and printed in memory, dates, random numbers of a generator that is handed
/// over.
bool hasOwnEffects(llvm::StringRef Name);

/// Whether a function of that name is mathematics that no list of LLVM's has: of complex numbers, and Bessel's.
bool isMathematics(llvm::StringRef Name);

} // namespace tracekit
