// LoopStarts.h: where a loop of optimised code stands in the source.
#pragma once

#include "SourceLoops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"

namespace tracekit {

/// The places where one function's loops begin.
///
/// Clang writes a loop's place beside its branch back, and the optimiser drops that where it merges branches. What
/// LLVM offers then is where some instruction before the loop or in its header stands: often in a loop inside, or in a
/// function that was inlined. The loop's text tells more: it stands in one loop of the source.
class LoopStarts {
public:
  /// `InSource`: null if it is not known.
  LoopStarts(const llvm::LoopInfo &LI, const SourceLoops *InSource);

  /// Null where nothing says it.
  llvm::DebugLoc of(const llvm::Loop &L) const { return Starts.lookup(&L); }

private:
  /// A loop of the source in one copy of its function: each call at which it was inlined has one.
  struct Copy {
    const SourceLoop *Of = nullptr;
    llvm::DISubprogram *Function = nullptr; // perhaps another instance of a template than that of `Of`
    llvm::DILocation *Call = nullptr;       // null if it was not inlined

    Copy(const SourceLoop *Of, const llvm::DILocation *In);
    bool operator==(const Copy &Other) const;
    llvm::DebugLoc start() const;
  };
  using Nest = llvm::SmallVector<Copy, 8>; // inner loops first

  Nest around(const llvm::DILocation &Place) const;
  Nest around(const llvm::Loop &L, bool OwnTextOnly) const;
  Copy copyAt(llvm::DebugLoc Start) const;
  llvm::DebugLoc byText(const llvm::Loop &L) const;

  const llvm::LoopInfo &LI;
  const SourceLoops *InSource;
  llvm::DenseMap<const llvm::Loop *, llvm::DebugLoc> Starts;
};

} // namespace tracekit
